#!/usr/bin/env bash
# The pause of a change of plan in the middle of a run, as the program prints it: the change itself and
# what the first step after it takes beyond the second, as a share of a step.
#
#   bench/reshape_pause.sh PROGRAM [--ranks 8] [--from 2,2,2] [--to 4,2,1] [--changes 6] [--model gpt-30m]
#
# The plans take turns. 8 sequences of 256 tokens a step.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobs/mpi_here.sh
ranks=8 from=2,2,2 to=4,2,1 changes=6 model=gpt-30m
[[ ${1:-} != -h && ${1:-} != --help ]] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0; }
(($# >= 1)) || { echo "reshape_pause: a program, please (see --help)" >&2; exit 64; }
program=$(realpath "$1")
shift
while (($#)); do
  case "$1" in
    --ranks) ranks=$2; shift 2 ;;
    --from) from=$2; shift 2 ;;
    --to) to=$2; shift 2 ;;
    --changes) changes=$2; shift 2 ;;
    --model) model=$2; shift 2 ;;
    *) echo "reshape_pause: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
head -c 400000 /dev/zero | tr '\0' 'a' > "$work/text"
apart=8
cat > "$work/input.toml" <<TOML
version = 1
[model]
preset = "$model"
context = 256
[data]
train = "$work/text"
format = "bytes"
[batch]
sequences = 8
[checkpoint]
every_minutes = 0
restart = "never"
[log]
every_steps = 1
TOML
train() { # FOLDER args...
  mpirun -n "$ranks" --oversubscribe "$program" "$work/input.toml" -d "$work/$1" "${@:2}" \
    > "$work/$1.out" 2>&1 || { cat "$work/$1.out" >&2; exit 1; }
}
train from --set run.steps=1 --set "mesh.cuboid=[$from]"
train to --set run.steps=1 --set "mesh.cuboid=[$to]"
wishes=""
for ((change = 1; change <= changes; ++change)); do
  ((change % 2)) && plan=to || plan=from
  wishes+="\"$((change * apart)):$work/$plan/plan.toml\", "
done
train run --set run.steps=$(((changes + 1) * apart)) --set "mesh.cuboid=[$from]" \
  --set "debug.replan=[${wishes%, }]"
echo "$("$program" --version | head -n 1)"
echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores, $ranks ranks, $model," \
     "$from and $to in turn"
grep -E '^plan |^the change of plan|^memory' "$work/run.out"
