#!/usr/bin/env bash
# Tokens per second of `generate`, beside an earlier version of the program and beside the rate at
# which this machine reads the model's weights once for each token.
#
#   bench/generate_speed.sh [--before PROGRAM] [--model gpt2-124m] [--tokens 256] [--turns 5]
#                           [--threads 2] [--batch 8]
#
# All take turns, so that a change of the machine's speed hits all: a plain read of the bytes of the
# weights (bench/read_rate.cpp), one text, `batch` texts at a time, and the earlier version, of which
# seven tokens less one are timed (it computed the whole context for each). Medians over the turns, as
# a Markdown table. What it made stays in build/bench.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobs/mpi_here.sh
before= model=gpt2-124m tokens=256 turns=5 threads=2 batch=8
while (($#)); do
  case "$1" in
    --before) before=$2; shift 2 ;;
    --model) model=$2; shift 2 ;;
    --tokens) tokens=$2; shift 2 ;;
    --turns) turns=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --batch) batch=$2; shift 2 ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "generate_speed: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
out=build/bench/generate
bin=build/cpu/transformer3d
mkdir -p "$out"
[[ -x $bin ]] || { echo "generate_speed: build first: cmake --preset cpu && cmake --build --preset cpu" >&2; exit 66; }
c++ -O3 -march=native -ffast-math -fopenmp -o "$out/read_rate" bench/read_rate.cpp
run=$out/$model
if [[ ! -d $run ]]; then
  head -c 400000 /dev/zero | tr '\0' 'a' > "$out/text"
  cat > "$out/input.toml" <<TOML
version = 1
[run]
steps = 1
[model]
preset = "$model"
[data]
train = "$out/text"
format = "bytes"
[batch]
sequences = 1
[checkpoint]
every_minutes = 0
TOML
  "$bin" "$out/input.toml" -d "$run" > "$out/train.log" 2>&1
fi
bytes=$("$bin" "$out/input.toml" --dry-run 1 | sed -n 's/^model \([0-9.]*\) M parameters.*/\1/p')
bytes=$(awk -v m="$bytes" 'BEGIN { printf "%.0f", 4e6 * m }')
same=(--set "debug.threads=$threads" --greedy)
written() { sed -n 's/.*, \([0-9]*\) written in .*(\([0-9.]*\) tokens.*/\2/p'; }
for _ in $(seq "$batch"); do echo "the old king"; done > "$out/prompts"
seconds_of() { # PROGRAM TOKENS
  local begin end
  begin=$(date +%s.%N)
  "$1" generate "$run" --prompt "the old king" --tokens "$2" "${same[@]}" > "$out/before.txt" 2> "$out/before.log"
  end=$(date +%s.%N)
  awk -v a="$begin" -v b="$end" 'BEGIN { print b - a }'
}
: > "$out/read" ; : > "$out/one" ; : > "$out/many" ; : > "$out/earlier"
for _ in $(seq "$turns"); do
  "$out/read_rate" "$bytes" "$threads" 5 | sort -g | sed -n 3p | awk '{ print 1 / $1 }' >> "$out/read"
  "$bin" generate "$run" --prompt "the old king" --tokens "$tokens" --ignore-eos "${same[@]}" 2>&1 > /dev/null |
    written >> "$out/one"
  "$bin" generate "$run" --prompts "$out/prompts" --tokens "$tokens" --ignore-eos --batch "$batch" "${same[@]}" 2>&1 > /dev/null |
    written >> "$out/many"
  [[ -z $before ]] ||
    echo "$(seconds_of "$before" 7) $(seconds_of "$before" 1)" | awk '{ print 6 / ($1 - $2) }' >> "$out/earlier"
done
summary() { sort -g "$1" | awk '{ x[NR] = $1 } END { printf "%.2f (%.2f to %.2f)", x[int((NR + 1) / 2)], x[1], x[NR] }'; }
median() { sort -g "$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
echo "| $model, fp32, $tokens tokens, $threads threads | tokens/s, median of $turns (least to most) |"
echo "|---|---:|"
echo "| reading the weights ($((bytes / 1000000)) MB) once for each token | $(summary "$out/read") |"
echo "| one text | $(summary "$out/one") |"
echo "| $batch texts at a time, together | $(summary "$out/many") |"
[[ -z $before ]] || echo "| one text, earlier version | $(summary "$out/earlier") |"
awk -v one="$(median "$out/one")" -v read="$(median "$out/read")" 'BEGIN { printf "\none text / reading: %.2f\n", one / read }'
[[ -z $before ]] || awk -v one="$(median "$out/one")" -v before="$(median "$out/earlier")" \
  'BEGIN { printf "one text / earlier version: %.1f\n", one / before }'
