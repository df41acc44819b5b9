#!/usr/bin/env bash
# Made the files beside it: a checkpoint of step 3, and the losses of steps 4 to 6 of the same run. They
# come from the last version with balance.predictor and the rules of LB-BSP (8354893);
# tests/system/earlier_checkpoint.sh continues them. Run it again only with that version: make.sh PROGRAM
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export T3D_BIN=$1
work=$(mktemp -d)
cd "$work"
. "$here/../../support/job.sh"
. "$here/input.sh"
make_balance_input
run 2 input.toml -d run --set run.steps=3
expect_status 0
tar cf - -C run/ckpt step-00000003 | gzip -9n > "$here/step-00000003.tar.gz"
run 2 input.toml -d run --set run.steps=6
expect_status 0
losses run | tail -n 3 > "$here/losses.txt"
cat "$here/losses.txt"
