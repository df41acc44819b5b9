#!/usr/bin/env bash
# rotating.sh NAME: 77 (skipped) on every other day, half of the names on each: long tests take turns, so that all together
# stay within the time of a run. T3D_LINT_ALL=1 (tests/run.sh --full) runs all of them.
[[ ${T3D_LINT_ALL:-} == 1 ]] && exit 0
turn=$((($(cksum <<< "$1" | cut -d ' ' -f 1) + $(date -u +%s) / 86400) % 2))
((turn == 0)) && exit 0
echo "not $1's turn: it runs tomorrow, and today with T3D_LINT_ALL=1"
exit 77
