#!/usr/bin/env bash
# rotating.sh NAME: 77 (skipped) at every other commit, half of the names at each: long tests take turns, so that all
# together stay within the time of a run.
turn=$("$(dirname "$0")/turn.sh" 2)
own=$(($(cksum <<< "$1" | cut -d ' ' -f 1) % 2))
[[ $turn == all || $turn == "$own" ]] && exit 0
echo "not $1's turn: it runs at the next commit, and now with T3D_LINT_ALL=1"
exit 77
