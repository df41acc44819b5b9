#!/usr/bin/env bash
# What a GPU has to show: tests of every kernel, whole models against the CPU reference, speed beside
# PyTorch. Makes results.json and results.md; commit the table under docs/results/.
#
#   jobs/gpu_check.sh [--bundle FILE.tar.gz | DIR] [--seconds 520] [--out DIR] [--dry] [--pytorch-only]
#
# Builds the preset cuda where nvcc, CMake and MPI are; else takes a bundle (jobs/make_bundle.sh). Every
# step has its own time limit and leaves its own file in DIR/parts, so nothing done is lost; what the
# time did not suffice for is listed as not run. Ends with 0 if every test passed, 1 if not, 69 without
# a GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
started=$(date +%s)
seconds=520 bundle="" dry=0 pytorch_only=0
out=${OUT:-results/gpu-$(date +%Y-%m-%d)}
while (($#)); do
  case "$1" in
    --bundle) bundle=${2:?}; shift 2 ;;
    --seconds) seconds=${2:?}; shift 2 ;;
    --out) out=${2:?}; shift 2 ;;
    --dry) dry=1; shift ;;
    --pytorch-only) pytorch_only=1; shift ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "gpu_check.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
if ((dry)); then
  out=$(mktemp -d)
fi
mkdir -p "$out/parts"
out=$(cd "$out" && pwd)
parts=$out/parts
work=$(mktemp -d)
trap 'rm -rf "$work"; ((dry)) && rm -rf "$out"; true' EXIT
failed=0

left() { echo $((seconds - ($(date +%s) - started))); }
# step NAME LIMIT COMMAND...: runs it if there is time, keeps its output and how it ended.
step() {
  local name=$1 limit=$2 status
  shift 2
  if ((dry)); then echo "would run $name ($limit s): $*"; return 0; fi
  if (($(left) < 20)); then
    echo "{\"step\": \"$name\", \"status\": \"not run: out of time\"}" > "$parts/$name.step.json"
    return 0
  fi
  (($(left) < limit)) && limit=$(left)
  echo "--- $name ($(left) s left)"
  timeout "$limit" "$@" > "$out/$name.log" 2>&1
  status=$?
  local word=passed
  ((status == 0)) || word="failed ($status)"
  ((status == 124)) && word="stopped after $limit s"
  echo "{\"step\": \"$name\", \"status\": \"$word\"}" > "$parts/$name.step.json"
  echo "    $word"
  return $status
}
# A step whose failure is a failure of the check.
must() { step "$@" || failed=1; }

if ((!dry)) && ! nvidia-smi > "$out/device.log" 2>&1; then
  echo "gpu_check.sh: no GPU here (nvidia-smi says so)" >&2
  exit 69
fi
((dry)) || nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit \
  --format=csv,noheader > "$parts/device.txt"

# The program: what is built here, or the bundle.
prefix=()
bin=$root/build/cuda
bench=$root/build/cuda/bench
tests=$root/build/cuda/tests
if ((!pytorch_only)); then
  if [[ -z "$bundle" && -x $(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null) &&
    -x $(command -v cmake) && -x $(command -v mpicxx) ]]; then
    step build 400 bash -c 'cmake --preset cuda && cmake --build --preset cuda --target transformer3d t3d_gpu_tests t3d_bench_gpu' ||
      { failed=1; pytorch_only=1; }
  elif [[ -n "$bundle" ]]; then
    if ((!dry)); then
      if [[ -d $bundle ]]; then
        bundle_dir=$(cd "$bundle" && pwd)
      else
        tar -xzf "$bundle" -C "$work" || exit 66
        bundle_dir=$(ls -d "$work"/*/ | head -n 1)
      fi
      prefix=("${bundle_dir%/}/run.sh")
      bin=${bundle_dir%/}/bin bench=$bin tests=$bin
    fi
  else
    echo "gpu_check.sh: neither a toolkit to build with nor --bundle" >&2
    exit 69
  fi
fi
run() { "${prefix[@]}" "$@"; }

# Inputs: a text of words, and a file of tokens with the frequencies of words (Zipf).
cd "$work"
python3 - <<'PY'
import random
random.seed(7)
words = "the a one old new red sea ship king queen road stone bread river sings sleeps walks finds takes and or".split()
with open("text.txt", "w") as file:
    for _ in range(600):
        file.write(" ".join(random.choice(words) for _ in range(9)) + "\n")
import array
ranks = array.array("H", (min(50256, int(random.paretovariate(0.6)) - 1) for _ in range(2_000_000)))
with open("tokens.u16", "wb") as file:
    ranks.tofile(file)
small = array.array("H", (min(31999, value) for value in ranks))
with open("tokens32k.u16", "wb") as file:
    small.tofile(file)
PY
cat > small.toml <<'TOML'
version = 1
[run]
name = "small"
steps = 20
[model]
layers = 2
hidden = 128
heads = 2
context = 64
vocab = 256
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 8
micro = 4
[optimizer]
lr = 1e-3
[checkpoint]
every_minutes = 0
TOML
small() { # NAME RANKS KEYS...
  local name=$1 ranks=$2
  shift 2
  local keys=()
  for key in "$@"; do keys+=(--set "$key"); done
  if ((ranks > 1)); then
    run mpirun -n "$ranks" --oversubscribe "$bin/transformer3d" small.toml -d "$name" "${keys[@]}"
  else
    run "$bin/transformer3d" small.toml -d "$name" "${keys[@]}"
  fi
}
same() { python3 "$root/bench/gpu_compare_losses.py" "$@"; }
whole_models() {
  local bad=0
  small reference 1 mesh.device=cpu precision.backend=reference || return 1
  small fp32 1 mesh.device=cuda && same reference fp32 --relative 1e-4 || bad=1
  small launches 1 mesh.device=cuda debug.graphs=false && same fp32 launches --relative 0 || bad=1
  small bf16 1 mesh.device=cuda precision.compute=bf16 && same reference bf16 --absolute 0.01 || bad=1
  small fp16 1 mesh.device=cuda precision.compute=fp16 && same reference fp16 --absolute 0.01 || bad=1
  small staged4 4 mesh.device=cuda mesh.transport=staged "mesh.cuboid=[2,2,1]" && same reference staged4 --relative 1e-4 || bad=1
  small staged8 8 mesh.device=cuda mesh.transport=staged "mesh.cuboid=[2,2,2]" && same reference staged8 --relative 1e-4 || bad=1
  small mixed 2 mesh.device=mixed "mesh.cuboid=[1,2,1]" && same reference mixed --relative 1e-4 || bad=1
  # An option whose difference is reported, not judged.
  small fp8 1 mesh.device=cuda precision.compute=bf16 precision.matmul=fp8 && same bf16 fp8 --report || true
  return $bad
}
speed() { # NAME PRESET SEQUENCES CONTEXT DATA MORE...
  local name=$1 preset=$2 sequences=$3 context=$4 data=$5
  shift 5
  cat > "$name.toml" <<TOML
version = 1
[run]
name = "$name"
steps = 30
[model]
preset = "$preset"
context = $context
[data]
train = "$data"
format = "u16"
[batch]
sequences = $sequences
[precision]
compute = "bf16"
[mesh]
device = "cuda"
[checkpoint]
every_minutes = 0
TOML
  local keys=()
  for key in "$@"; do keys+=(--set "$key"); done
  run "$bin/transformer3d" "$name.toml" -d "$name" "${keys[@]}" || return 1
  cp "$name/log.jsonl" "$parts/ours.$preset.$(date +%s).jsonl"
  cp -r "$name/engines" "$out/engines-$preset" 2> /dev/null || true
}
torch_run() { # MODEL VARIANT MORE...
  local model=$1 variant=$2
  shift 2
  python3 "$root/bench/pytorch_gpu.py" --model "$model" --variant "$variant" \
    --json "$parts/torch.$model.$variant.$(date +%s).json" "$@"
}
export -f run small same whole_models speed torch_run
export bin root parts out
export prefix_words="${prefix[*]:-}"
# Functions run in a child under `timeout`: arrays do not travel, words do.
call() { bash -c 'prefix=($prefix_words); "$@"' call "$@"; }
export -f call

if ((!pytorch_only)); then
  must tests 150 "${prefix[@]}" "$tests/t3d_gpu_tests"
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null || true)
  must models 150 bash -c 'prefix=($prefix_words); whole_models'
fi
torch_speed() { step "torch-$1-$2" "${3:-70}" bash -c 'torch_run "$@"' torch_run "$1" "$2" "${@:4}" || true; }
our_speed() { ((pytorch_only)) || step "ours-$1${2:-}" 70 bash -c 'prefix=($prefix_words); speed "$@"' speed "${@:3}" || true; }
our_speed 124m "" s124 gpt2-124m 64 1024 tokens.u16
torch_speed gpt2-124m compile-cudnn
torch_speed gpt2-124m compile
our_speed 124m -again s124b gpt2-124m 64 1024 tokens.u16
torch_speed gpt2-124m eager 40
((pytorch_only)) || step ops 100 "${prefix[@]}" "$bench/t3d_bench_gpu" --json "$parts/ops.json" --seconds 80 || true
our_speed 1558m "" s1558 gpt2-1558m 8 1024 tokens.u16
torch_speed gpt2-1558m compile-cudnn 90
our_speed 350m "" s350 gpt2-350m 32 1024 tokens.u16
torch_speed gpt2-350m compile-cudnn
our_speed 774m "" s774 gpt2-774m 16 1024 tokens.u16
torch_speed gpt2-774m compile-cudnn 90
our_speed 7b "" s7b llama2-7b 2 2048 tokens32k.u16 batch.recompute=block
torch_speed llama2-7b compile-cudnn 120
if ((!pytorch_only)) && [[ -n "${sanitizer:-}" ]]; then
  for tool in memcheck racecheck; do
    must "$tool" 60 "${prefix[@]}" "$sanitizer" --tool "$tool" --error-exitcode 9 "$tests/t3d_gpu_tests" "attention of nothing,device activations*"
  done
  # Two ranks of NCCL on one GPU: not supported by NCCL, so tried and reported only.
  step nccl-one-gpu 60 bash -c 'prefix=($prefix_words); NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0 run mpirun -n 2 --oversubscribe bash -c "NCCL_HOSTID=\$OMPI_COMM_WORLD_RANK exec $bin/transformer3d small.toml -d nccl --set mesh.device=cuda --set mesh.transport=nccl --set mesh.cuboid=[1,2,1]"' || true
fi
((dry)) && exit 0
python3 "$root/bench/gpu_report.py" "$parts" --out "$out"
exit $failed
