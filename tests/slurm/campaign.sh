#!/usr/bin/env bash
# The whole campaigns on a real Slurm, one after another: sixty preemptions with grace, sixty kills and preemptions
# without. As root; half an hour and more on 2 cores.
#
#   tests/slurm/campaign.sh [DIR [SEED]]      (runs/campaign, 1)
#
# T3D_BIN is the program (build/cpu/transformer3d; not below /tmp, of which each node has one of its own),
# T3D_EVENTS the number of events of each (60). Ended, and called again with the same DIR, it goes on behind the
# last event that is done. DIR/*/events.txt are the events, DIR/*.log what else there is to see.
set -uo pipefail
T3D_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export T3D_SOURCE T3D_BIN=${T3D_BIN:-$T3D_SOURCE/build/cpu/transformer3d}
export T3D_PATIENCE=${T3D_PATIENCE:-5} # a campaign is not to end for a pause of the machine
export T3D_EVENTS=${T3D_EVENTS:-60} T3D_SEED=${2:-1}
dir=$(realpath -m "${1:-$T3D_SOURCE/runs/campaign}")
source "$T3D_SOURCE/jobs/mpi_here.sh"
failed=0 running=
trap '[[ -z $running ]] || { kill "$running"; wait "$running"; }; exit 143' TERM INT HUP
for name in preemptions kills; do
  mkdir -p "$dir/$name"
  echo "== $name, $T3D_EVENTS events, seed $T3D_SEED"
  if [[ ! -e $dir/$name/done ]]; then
    (cd "$dir/$name" && exec bash "$T3D_SOURCE/tests/slurm/$name.sh") > "$dir/$name.log" 2>&1 &
    running=$!
    if wait "$running"; then touch "$dir/$name/done"; else failed=1; fi
    running=
  fi
  tail -n 8 "$dir/$name.log"
done
exit $failed
