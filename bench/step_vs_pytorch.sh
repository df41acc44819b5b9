#!/usr/bin/env bash
# Tokens per second of whole training steps, transformer3d against PyTorch, on this machine's CPU.
#
#   bench/step_vs_pytorch.sh [--model gpt-30m|gpt2-124m] [--dtype fp32|bf16] [--batch 2] [--steps 5]
#                            [--threads 2] [--no-compile]
#
# The same model, batch, context, threads and number type on both sides; the two take turns (A B A B),
# so that a change of the machine's speed hits both. Ours runs as 1 process x 2 threads and as 2 ranks
# x 1 thread. Each number is the median over all counted steps of both turns; the first two steps of a
# turn do not count. Prints a Markdown table; what it made stays in build/bench.
# PyTorch goes to build/venv (PYTORCH_PYTHON=/path/to/python uses another one).
set -euo pipefail
cd "$(dirname "$0")/.."
source jobs/mpi_here.sh
model=gpt-30m dtype=fp32 batch=2 steps=5 threads=2 compile=1
while (($#)); do
  case "$1" in
    --model) model=$2; shift 2 ;;
    --dtype) dtype=$2; shift 2 ;;
    --batch) batch=$2; shift 2 ;;
    --steps) steps=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --no-compile) compile=0; shift ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "step_vs_pytorch: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
out=build/bench
bin=build/cpu/transformer3d
python=${PYTORCH_PYTHON:-build/venv/bin/python}
mkdir -p "$out"
if [[ ! -x $bin ]]; then
  echo "step_vs_pytorch: build first: cmake --preset cpu && cmake --build --preset cpu" >&2
  exit 66
fi
if [[ ! -x $python ]]; then
  python3 -m venv build/venv
  build/venv/bin/pip install -q torch numpy
fi

# Random bytes are as good as a text for timing: one token per byte, the model's full vocabulary.
[[ -s $out/noise.bytes ]] || head -c 4000000 /dev/urandom > "$out/noise.bytes"
counted=$((steps + 2))
cat > "$out/bench.toml" <<TOML
version = 1
[run]
steps = $counted
[model]
preset = "$model"
[data]
train = "$out/noise.bytes"
format = "bytes"
[batch]
sequences = $batch
[precision]
compute = "$dtype"
[checkpoint]
every_minutes = 0
restart = "never"
[log]
progress = false
TOML

: > "$out/results.tsv"
record() { # name, tokens/s ... on stdin, one a line
  awk -v name="$1" '{print name "\t" $1}' >> "$out/results.tsv"
}
ours() { # ranks, threads per rank, cuboid
  rm -rf "$out/run"
  OMP_NUM_THREADS=$2 mpirun -n "$1" --oversubscribe "$bin" "$out/bench.toml" \
    --set "run.dir=$out/run" --set "mesh.cuboid=$3" --set "debug.threads=$2" > "$out/ours.log" 2>&1 ||
    { tail -n 20 "$out/ours.log" >&2; exit 70; }
  sed -n 's/.*"tokens_per_second": *\([0-9.e+]*\).*/\1/p' "$out/run/log.jsonl" | tail -n "$steps" |
    record "transformer3d, $1 rank(s) x $2 thread(s)"
}
pytorch() { # extra argument, name
  "$python" bench/pytorch_step.py --model "$model" --dtype "$dtype" --threads "$threads" \
    --batch "$batch" --steps "$steps" $1 | tail -n 1 |
    "$python" -c 'import json,sys; [print(t) for t in json.load(sys.stdin)["tokens_per_second"]]' |
    record "$2"
}

for turn in 1 2; do
  echo "turn $turn" >&2
  ours 1 "$threads" "[1, 1, 1]"
  pytorch "" "PyTorch eager, $threads thread(s)"
  ours "$threads" 1 "[1, 1, $threads]"
  if ((compile)); then pytorch --compile "PyTorch compiled, $threads thread(s)"; fi
done

"$python" - "$out/results.tsv" <<PYTHON
import statistics, sys
rows = {}
for line in open(sys.argv[1]):
    name, value = line.rstrip("\n").split("\t")
    rows.setdefault(name, []).append(float(value))
print("\n$model, $dtype, batch $batch\n")
print("| program | tokens/s, median | lowest | highest | steps |")
print("|---|---:|---:|---:|---:|")
for name, values in rows.items():
    print(f"| {name} | {statistics.median(values):.0f} | {min(values):.0f} | {max(values):.0f} | {len(values)} |")
PYTHON
