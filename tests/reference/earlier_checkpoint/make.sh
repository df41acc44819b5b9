#!/usr/bin/env bash
# Made the files beside it: a checkpoint of step 6, and the losses of steps 7 to 12 of the same run.
# They come from the last version whose checkpoints hold no plan (f9c10f1); tests/system/
# earlier_checkpoint.sh continues them. Run it again only with that version: make.sh PROGRAM
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export T3D_BIN=$1
work=$(mktemp -d)
cd "$work"
. "$here/../../support/job.sh"
. "$here/input.sh"
make_earlier_input
run 2 input.toml -d run --set schedule.kind=constant --set run.steps=6
expect_status 0
rm -rf "$here"/step-*
cp -r run/ckpt/step-* "$here"
run 2 input.toml -d run --set schedule.kind=constant
expect_status 0
losses run | tail -n 6 > "$here/losses.txt"
cat "$here/losses.txt"
