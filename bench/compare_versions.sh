#!/usr/bin/env bash
# Whole training steps of two builds of the program, in turns (A B A B), as ratios B / A.
#
#   bench/compare_versions.sh A B [--ranks 1] [--steps 6] [--pairs 5] [--model gpt-30m]
#
# Prints for each pair the processor seconds of all ranks per step and the median wall seconds per
# step, and at the end the medians of the ratios with their 95 % intervals (by order statistics; from
# 6 pairs on). Processor seconds are the difference between a run
# of all steps and one of a single step, so that the start does not count; on a machine that others
# use too they are steadier than wall seconds. No checkpoint is written before the end.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobs/mpi_here.sh
ranks=1 steps=6 pairs=5 model=gpt-30m
[[ ${1:-} != -h && ${1:-} != --help ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0; }
(($# >= 2)) || { echo "compare_versions: two programs, please (see --help)" >&2; exit 64; }
a=$(realpath "$1") b=$(realpath "$2")
shift 2
while (($#)); do
  case "$1" in
    --ranks) ranks=$2; shift 2 ;;
    --steps) steps=$2; shift 2 ;;
    --pairs) pairs=$2; shift 2 ;;
    --model) model=$2; shift 2 ;;
    *) echo "compare_versions: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
head -c 400000 /dev/zero | tr '\0' 'a' > "$work/text"
cat > "$work/input.toml" <<TOML
version = 1
[run]
steps = $steps
[model]
preset = "$model"
context = 256
[data]
train = "$work/text"
format = "bytes"
[batch]
sequences = 2
[checkpoint]
every_minutes = 0
[log]
every_steps = 1
TOML

once() { # PROGRAM STEPS: "processor seconds" of all ranks; log.jsonl in $work/run
  rm -rf "$work/run"
  local launch=()
  ((ranks == 1)) || launch=(mpirun -n "$ranks" --oversubscribe)
  local TIMEFORMAT='%3U %3S'
  { time "${launch[@]}" "$1" "$work/input.toml" -d "$work/run" --set run.steps="$2" \
      > "$work/out" 2>&1; } 2> "$work/time" || { cat "$work/out" >&2; return 1; }
  awk '{ print $1 + $2 }' "$work/time"
}
median_and_interval() {
  sort -g | awk '
    { x[NR] = $1 }
    END {
      # The k-th smallest and the k-th largest, with the largest k for which the median lies below
      # the first in at most 2.5 % of all samples.
      for (term = 0.5 ^ NR; (below += term) <= 0.025; term *= (NR - k) / ++k) {}
      printf "%.4f", x[int((NR + 1) / 2)]
      if (k > 0) printf " (%.3f to %.3f)", x[k], x[NR + 1 - k]
    }'
}
median() { sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
wall() { sed -n 's/.*"seconds":\([0-9.e-]*\),.*/\1/p' "$work/run/log.jsonl" | tail -n +3 | median; }
measure() { # PROGRAM: "processor seconds per step, wall seconds per step"
  local short long
  short=$(once "$1" 1)
  long=$(once "$1" "$steps")
  echo "$(awk -v l="$long" -v s="$short" -v n="$steps" 'BEGIN { print (l - s) / (n - 1) }') $(wall)"
}

echo "A = $("$a" --version | head -n 1), B = $("$b" --version | head -n 1)"
echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores, $ranks ranks, $model"
for ((pair = 1; pair <= pairs; ++pair)); do
  # Every other pair the other way round: whatever drifts hits both.
  if ((pair % 2)); then x=$(measure "$a") y=$(measure "$b"); else y=$(measure "$b") x=$(measure "$a"); fi
  read -r cpu_a wall_a <<< "$x"
  read -r cpu_b wall_b <<< "$y"
  awk -v p="$pair" -v ca="$cpu_a" -v cb="$cpu_b" -v wa="$wall_a" -v wb="$wall_b" 'BEGIN {
    printf "pair %d: processor %.3f %.3f s, ratio %.4f; wall %.3f %.3f s, ratio %.4f\n",
           p, ca, cb, cb / ca, wa, wb, wb / wa }' | tee -a "$work/pairs"
done
echo "median ratio B / A: processor $(sed 's/.*processor [^r]*ratio \([0-9.]*\);.*/\1/' "$work/pairs" | median_and_interval)," \
     "wall $(sed 's/.*ratio //' "$work/pairs" | median_and_interval)"
