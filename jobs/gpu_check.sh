#!/usr/bin/env bash
# All checks that need a GPU, in one call: tests, whole trainings compared with the reference on the CPU,
# benchmarks beside PyTorch, and a page of tables.
#
#   jobs/gpu_check.sh [--bundle FOLDER|FILE.tar.gz] [--seconds 520] [--out DIR] [--only REGEX]
#                     [--pytorch-only] [--flat] [--dry]
#
# Without --bundle it builds build/cuda first (this time does not count in --seconds). Where cmake, nvcc or
# mpicc is missing it takes build/bundle or build/bundle.tar.gz, which jobs/make_bundle.sh made elsewhere.
# The most important steps run first. Each has its own limit, and is kept as a small file in DIR/parts as soon
# as it ends. A step for which no time is left is "not run: out of time". DIR/results.md and DIR/results.json
# are complete after every step, so that a job that is killed loses one step. --only runs the steps whose
# name matches. --flat keeps parts and logs elsewhere and leaves four files in DIR (where few files can be
# fetched). DIR is results/gpu-<date>, or $OUT if that is set, then with --flat. --dry shows the steps.
# Ends with 0, 1 if a test or a comparison of losses failed, 69 where there is no GPU.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
seconds=520 out=${OUT:-} bundle="" only="" dry=0 pytorch_only=0 flat=0
[[ -n $out ]] && flat=1
while (($#)); do
  case "$1" in
    --bundle) bundle=$(realpath -m "${2:?--bundle needs a folder or a .tar.gz}"); shift 2 ;;
    --seconds) seconds=${2:?--seconds needs a number}; shift 2 ;;
    --out) out=$(realpath -m "${2:?--out needs a folder}") flat=0; shift 2 ;;
    --only) only=${2:?--only needs a regular expression}; shift 2 ;;
    --dry) dry=1; shift ;;
    --pytorch-only) pytorch_only=1; shift ;;
    --flat) flat=1; shift ;;
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "gpu_check: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
say() { printf '\n== %s\n' "$*"; }
cd "$root" || exit 66
source jobs/mpi_here.sh
report=$root/bench/gpu_report.py
export compare=$root/bench/gpu_compare_losses.py
failures=0

if ((!dry)) && ! nvidia-smi -L 2> /dev/null | grep -q GPU; then
  echo "gpu_check: no GPU: nvidia-smi finds none here; --dry shows what would run" >&2
  exit 69
fi

# ---- the program: a build, or a bundle

find_program() {
  if [[ -z $bundle && $(command -v cmake nvcc mpicc | wc -l) == 3 ]]; then
    say "build (build/cuda/build.log)"
    mkdir -p build/cuda
    if { cmake --preset cuda && cmake --build --preset cuda &&
      cmake --build --preset cuda --target t3d_bench_gpu; } > build/cuda/build.log 2>&1; then
      export PATH=$root/build/cuda:$root/build/cuda/tests:$root/build/cuda/bench:$PATH
      ours=(env) origin="build/cuda"
      SECONDS=0 # building is not counted
      return 0
    fi
    tail -n 20 build/cuda/build.log
    failures=$((failures + 1))
    echo "gpu_check: the build failed; trying a bundle"
  fi
  [[ -n $bundle ]] || for bundle in "$root/build/bundle" "$root/build/bundle.tar.gz"; do [[ -e $bundle ]] && break; done
  if [[ -f $bundle ]]; then
    mkdir -p "$work/bundle" && tar -C "$work/bundle" --strip-components=1 -xzf "$bundle" || return 1
    bundle=$work/bundle
  fi
  [[ -x $bundle/run.sh ]] || return 1
  ours=("$bundle/run.sh") origin=$bundle
}

has() { "${ours[@]}" bash -c 'command -v "$1"' _ "$1" > /dev/null 2>&1; }

# ---- steps

# step NAME KIND LIMIT NEED RESULT command...: runs a command for LIMIT seconds at most if NEED are
# left. RESULT is the JSON file it makes, or -. Kinds test and losses count; trial and the others only tell.
step() {
  local name=$1 kind=$2 limit=$3 need=$4 result=$5 left=$((seconds - SECONDS)) status=passed note="" code=0
  shift 5
  [[ -n $only && $name != facts && ! $name =~ $only ]] && return 0
  if ((dry)); then
    printf '%-28s %-9s %4d s  %s\n' "$name" "$kind" "$limit" "$(shown "$@")"
    return 0
  fi
  if ((left < need)); then
    keep "$name" "$kind" "not run" 0 "out of time" - -
    return 1
  fi
  ((limit < left)) || limit=$left
  say "$name (at most $limit s)"
  local start=$SECONDS log=$logs/$name.log
  timeout -k 3 "$limit" "$@" > "$log" 2>&1 &
  child=$!
  wait $child || code=$?
  child=""
  if ((code == 124 || code == 137)); then
    if ((SECONDS >= seconds - 1)) || [[ $name == sanitizer* ]]; then
      status="not run" note="out of time, stopped after $((SECONDS - start)) s"
    else
      status=failed note="took longer than $limit s"
    fi
  elif [[ $name == sanitizer* && $code != 0 ]] && grep -qi 'device not supported' "$log"; then
    status="not run" note="compute-sanitizer does not support this device"
  elif [[ $name == *-library && $code == 69 ]]; then
    status="not run" note=$(last_words "$log")
  elif ((code != 0)); then
    status=failed note="ended with $code: $(last_words "$log")"
  fi
  keep "$name" "$kind" "$status" $((SECONDS - start)) "$note" "$result" "$log"
  [[ $status == passed ]]
}

# What a failed step said: the program's own error, else the last line with a word in it.
last_words() {
  { grep -aE '^(transformer3d|t3d_[a-z_]+|gpu_[a-z_]+|[A-Za-z.]*Error): ' "$1" || grep -a '[a-z]' "$1"; } |
    tail -n 1 | tr '|' '/' | cut -c 1-200
}

# The words of a command on one line, the text of functions and paths of this machine cut away.
shown() { printf '%s ' "$@" | tr '\n' ' ' | sed "s|$root/||g; s|$work/||g" | cut -c 1-150; }

# keep NAME KIND STATUS SECONDS NOTE RESULT LOG: the step's part, and the tables anew.
keep() {
  local options=()
  [[ $6 != - ]] && options+=(--result "$6")
  [[ $7 != - ]] && options+=(--log "$7")
  echo "$1: $3${5:+: $5} ($4 s)" | tee -a "$out/check.log"
  count=$((count + 1))
  python3 "$report" part "$parts/$(printf '%02d' "$count")-$1.json" --step "$1" --kind "$2" --status "$3" \
    --seconds "$4" --note "$5" "${options[@]}"
  [[ $3 == "not run" && $4 == 0 ]] || make_tables # a row of those that have no time left must be quick
  [[ $3 == failed && ($2 == test || $2 == losses) ]] && failures=$((failures + 1))
  return 0
}

make_tables() {
  python3 "$report" merge "$parts" "$out"
  if ((flat)); then
    tar -C "$work" -czf "$out/new" parts logs && mv "$out/new" "$out/parts.tar.gz"
  fi
}

skip() { # NAME KIND WHY
  [[ -n $only && ! $1 =~ $only ]] || keep "$1" "$2" "not run" 0 "$3" - -
}

# ---- tests

tests() {
  if ((!dry)) && ! has t3d_gpu_tests; then
    skip tests test "no t3d_gpu_tests in $origin"
    return
  fi
  T3D_TEST_SECONDS=60 step tests test 120 15 - "${ours[@]}" stdbuf -oL t3d_gpu_tests -d yes
}

sanitizer() {
  local tool quick="device norms equal the reference,attention on tensor cores at the borders of its tiles"
  quick+=",matmuls of integers are exact in every form"
  for tool in memcheck racecheck; do
    if ((!dry)) && ! { has compute-sanitizer && has t3d_gpu_tests; }; then
      skip "sanitizer-$tool" test "no compute-sanitizer or no t3d_gpu_tests"
      continue
    fi
    T3D_TEST_SECONDS=100 step "sanitizer-$tool" test 60 30 - "${ours[@]}" bash -c \
      'exec compute-sanitizer --tool "$1" --error-exitcode 99 "$(command -v t3d_gpu_tests)" -d yes "$2"' _ \
      "$tool" "$quick"
  done
}

# ---- losses of whole trainings

# A text that a model can learn something of; the input of all comparisons.
make_small_input() {
  # shellcheck source=/dev/null
  (cd "$work" && source "$root/tests/support/job.sh" && make_text 20000)
  cat > "$work/small.toml" <<TOML
version = 1
[run]
name = "gpu-check"
steps = 20
[model]
layers = 2
hidden = 128
heads = 2
context = 64
vocab = 256
dropout = 0.1
[data]
train = "$work/text.txt"
format = "bytes"
[batch]
sequences = 4
micro = 2
[optimizer]
lr = 1e-3
[checkpoint]
every_minutes = 0
restart = "never"
TOML
}

# Trains, then compares with another run: REFERENCE RUN RESULT BOUND... -- command...
train_and_compare() {
  local reference=$1 run=$2 result=$3 bound=()
  shift 3
  while [[ $1 != -- ]]; do bound+=("$1"); shift; done
  shift
  rm -rf "$run"
  "$@" && python3 "$compare" "$reference" "$run" "${bound[@]}" --json "$result"
}
export -f train_and_compare

# losses NAME KIND RANKS REFERENCE "BOUND" sets...
losses() {
  local name=$1 kind=$2 ranks=$3 reference=$4 bound=() command=("${ours[@]}") setting
  read -ra bound <<< "$5"
  shift 5
  ((ranks > 1)) && command+=(mpirun -n "$ranks" --oversubscribe)
  command+=(transformer3d "$work/small.toml" -d "$work/$name")
  for setting in "$@"; do command+=(--set "$setting"); done
  step "losses-$name" "$kind" 60 10 "$work/$name.json" bash -c 'train_and_compare "$@"' train_and_compare \
    "$work/$reference" "$work/$name" "$work/$name.json" "${bound[@]}" -- "${command[@]}"
}

all_losses() {
  local gpu="mesh.device=cuda" staged="mesh.transport=staged" bf16="precision.compute=bf16"
  local fp32="--relative 1e-4 --norm 1e-2"
  ((dry)) || make_small_input
  # The reference compares with itself: what counts is that it ran.
  losses reference losses 1 reference "--relative 0" mesh.device=cpu precision.backend=reference
  losses fp32 losses 1 reference "$fp32" $gpu
  losses bf16 losses 1 reference "--absolute 0.01" $gpu $bf16
  losses fp32-2x2x1 losses 4 fp32 "$fp32" $gpu $staged "mesh.cuboid=[2,2,1]"
  losses fp32-2x2x2 losses 8 fp32 "$fp32" $gpu $staged "mesh.cuboid=[2,2,2]"
  # Each engine, not only the one that was faster.
  losses bf16-native losses 1 reference "--absolute 0.01" $gpu $bf16 precision.gemm_engine=native \
    precision.attention_engine=native
  losses bf16-gemm-library losses 1 reference "--absolute 0.01" $gpu $bf16 precision.gemm_engine=library
  losses bf16-attention-library losses 1 reference "--absolute 0.01" $gpu $bf16 \
    precision.attention_engine=library
  losses bf16-2x2x2 losses 8 reference "--absolute 0.01" $gpu $bf16 $staged "mesh.cuboid=[2,2,2]"
  losses fp16 losses 1 reference "--absolute 0.01" $gpu precision.compute=fp16
  losses mixed losses 2 reference "$fp32" mesh.device=mixed "mesh.cuboid=[1,2,1]"
  # Graphs change no bit; without timing both runs have the same engines.
  losses graphs losses 1 reference "$fp32" $gpu precision.tune=false
  losses launches losses 1 graphs "--relative 0" $gpu precision.tune=false debug.graphs=false
  losses fp8 trial 1 reference "--absolute 0.05" $gpu $bf16 precision.matmul=fp8
  losses_nccl
}

# NCCL wants a GPU per rank; under different host names it does not see that two ranks share one.
losses_nccl() {
  local each=(transformer3d "$work/small.toml" -d "$work/nccl" --set mesh.device=cuda
    --set mesh.transport=nccl --set "mesh.cuboid=[1,2,1]")
  step losses-nccl-one-gpu trial 60 20 "$work/nccl.json" bash -c 'train_and_compare "$@"' train_and_compare \
    "$work/fp32" "$work/nccl" "$work/nccl.json" --relative 1e-4 -- "${ours[@]}" \
    env NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0 NCCL_DEBUG=WARN \
    mpirun --oversubscribe -n 1 env NCCL_HOSTID=one "${each[@]}" : -n 1 env NCCL_HOSTID=two "${each[@]}"
}

# ---- benchmarks

ops() {
  if ((!dry)) && ! has t3d_bench_gpu; then
    skip ops ops "no t3d_bench_gpu in $origin"
    return
  fi
  step ops ops 110 40 "$work/ops.json" "${ours[@]}" t3d_bench_gpu --json "$work/ops.json" --seconds 80
}

# Tokens as frequent as words are (Zipf): rank r with weight 1/r.
make_tokens() { # VOCABULARY
  [[ -s $work/tokens-$1.u16 ]] || python3 - "$1" "$work/tokens-$1.u16" <<'PY'
import array, random, sys
vocabulary, random_number = int(sys.argv[1]), random.Random(7).random
tokens = array.array("H", (int(vocabulary ** random_number()) - 1 for _ in range(2_500_000)))
if sys.byteorder == "big":
    tokens.byteswap()
with open(sys.argv[2], "wb") as file:
    tokens.tofile(file)
PY
}

# Trains until the log has 30 steps and kills the program then: by itself it would end with a
# checkpoint, of 80 GB for 7B. MODEL RUN RESULT command...
train_30_steps() {
  local model=$1 run=$2 result=$3 pid code=0
  shift 3
  rm -rf "$run"
  "$@" &
  pid=$!
  while kill -0 $pid 2> /dev/null; do
    if [[ -e $run/log.jsonl ]] && (($(wc -l < "$run/log.jsonl") >= 30)); then
      kill -KILL $pid
      break
    fi
    sleep 0.2
  done
  wait $pid || code=$?
  ((code == 137)) || return $((code ? code : 70)) # it ended by itself, too early
  python3 "$report" training "$run/log.jsonl" --model "$model" --json "$result"
}
export -f train_30_steps
export report

# train TURN LIMIT MODEL SEQUENCES CONTEXT VOCABULARY [sets...]
train() {
  local name=train-$3-$1 limit=$2 model=$3 sequences=$4 context=$5 vocabulary=$6 setting sets=()
  shift 6
  for setting in "$@"; do sets+=(--set "$setting"); done
  if ((!dry)); then
    make_tokens "$vocabulary"
    cat > "$work/$model.toml" <<TOML
version = 1
[run]
name = "$model"
steps = 10000
[model]
preset = "$model"
context = $context
vocab = $vocabulary
[mesh]
device = "cuda"
[data]
train = "$work/tokens-$vocabulary.u16"
format = "u16"
[batch]
sequences = $sequences
[precision]
compute = "bf16"
[schedule]
kind = "constant"
[checkpoint]
every_minutes = 0
restart = "never"
TOML
  fi
  step "$name" training "$limit" 25 "$work/$name.json" bash -c 'train_30_steps "$@"' train_30_steps \
    "$model" "$work/$name" "$work/$name.json" "${ours[@]}" transformer3d "$work/$model.toml" \
    -d "$work/$name" "${sets[@]}"
}

pytorch() { # MODEL VARIANT LIMIT
  local name=pytorch-$1-$2
  if ((!dry)) && ! python3 -c 'import torch' 2> /dev/null; then
    skip "$name" pytorch "no PyTorch in this python3"
    return
  fi
  step "$name" pytorch "$3" 25 "$work/$name.json" python3 "$root/bench/pytorch_gpu.py" --model "$1" \
    --variant "$2" --json "$work/$name.json"
}

gpt() { # TURN MODEL SEQUENCES
  ((pytorch_only)) || train "$1" 60 "$2" "$3" 1024 50257
}

seven_billion() { # TURN
  ((pytorch_only)) || train "$1" 100 llama2-7b 2 2048 32000 batch.recompute=block
}

# Ours and PyTorch take turns, so that a change of the clocks hits both; the contender that is most
# often the best one comes first.
small_model() {
  gpt 1 gpt2-124m 64
  pytorch gpt2-124m compile-cudnn 80
  gpt 2 gpt2-124m 64
  pytorch gpt2-124m compile 80
  pytorch gpt2-124m eager 40
}

other_models() {
  local model
  for model in "gpt2-1558m 8" "gpt2-350m 32" "gpt2-774m 16"; do
    set -- $model
    gpt 1 "$1" "$2"
    pytorch "$1" compile-cudnn 100
    gpt 2 "$1" "$2"
  done
  seven_billion 1
  pytorch llama2-7b eager 100
  seven_billion 2
  pytorch llama2-7b compile 150
  for model in gpt2-1558m gpt2-350m gpt2-774m; do
    pytorch "$model" compile 100
    pytorch "$model" eager 60
  done
}

# ---- all of it

prepare() {
  out=$(realpath -m "${out:-results/gpu-$(date +%F)}")
  work=$(mktemp -d "${TMPDIR:-/tmp}/gpu_check.XXXXXX")
  child=""
  trap 'rm -rf "$work"' EXIT
  trap '[[ -z $child ]] || kill "$child"; exit 130' INT TERM
  ((dry)) && return
  parts=$out/parts logs=$out/logs
  ((flat)) && parts=$work/parts logs=$work/logs
  rm -rf "$out/parts" "$out/logs" "$out/parts.tar.gz"
  mkdir -p "$out" "$parts" "$logs"
  : > "$out/check.log"
  # What PyTorch compiled for one turn serves the next.
  export TORCHINDUCTOR_CACHE_DIR=$work/inductor
}

main() {
  SECONDS=0 count=0 origin="" ours=(run)
  prepare
  if ((!dry && !pytorch_only)) && ! find_program; then
    echo "gpu_check: no program: no cmake, nvcc and mpicc to build it, and no bundle (jobs/make_bundle.sh)" >&2
    exit 66
  fi
  step facts facts 90 1 "$work/facts.json" python3 "$report" facts --json "$work/facts.json"
  if ((pytorch_only)); then
    small_model
    other_models
  else
    tests
    all_losses
    small_model
    ops
    sanitizer
    other_models
  fi
  ((dry)) && exit 0
  make_tables
  say "$out/results.md"
  cat "$out/results.md"
  if ((failures > 0)); then
    echo "gpu_check: $failures test steps failed" >&2
    exit 1
  fi
}
main; exit # on one line: the file may be edited while it runs
