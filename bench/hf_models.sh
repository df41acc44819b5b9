#!/usr/bin/env bash
# Weights in and out, beside Hugging Face's transformers (docs/numbers.md, "Models in and out").
#
#   bench/hf_models.sh [--memory]
#
# Installs torch, transformers, peft and safetensors into build/venv unless $PYTHON has them. --memory measures the peak
# memory of import and export with 0.1 B and 1 B parameters instead (needs 12 GB of disk below build/hf).
set -euo pipefail
cd "$(dirname "$0")/.."
program=$PWD/build/cpu/transformer3d work=$PWD/build/hf
[[ -x $program ]] || { echo "hf_models: build first: cmake --preset cpu && cmake --build --preset cpu" >&2; exit 66; }
python=${PYTHON:-build/venv/bin/python}
if ! "$python" -c 'import peft, torch, transformers, safetensors' 2> /dev/null; then
  python3 -m venv build/venv
  build/venv/bin/pip install -q torch transformers peft safetensors numpy
  python=build/venv/bin/python
fi
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

peak() { # NAME command...: MiB of resident memory at the peak
  "$python" - "$@" << 'PY'
import resource, subprocess, sys, time
start = time.time()
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(f"| {sys.argv[1]} | {peak >> 10} MiB | {time.time() - start:.1f} s |", flush=True)
PY
}

if [[ ${1:-} == --memory ]]; then
  echo "| what | peak resident memory | time |"
  echo "|---|---|---|"
  for size in 0.1B 1B; do
    "$python" - "$work/$size" "$size" << 'PY'
import sys
import torch, transformers
wide = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8)
small = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=8, num_attention_heads=12, num_key_value_heads=4)
config = transformers.LlamaConfig(**(wide if sys.argv[2] == "1B" else small), vocab_size=32000)
torch.set_default_dtype(torch.bfloat16)
model = transformers.LlamaForCausalLM(config)
print(f"{sys.argv[2]}: {sum(p.numel() for p in model.parameters())} parameters, largest tensor "
      f"{max(p.numel() for p in model.parameters()) * 4 >> 20} MiB in fp32", file=sys.stderr)
model.save_pretrained(sys.argv[1])
PY
    peak "import $size" "$program" import "$work/$size" -o "$work/$size-ckpt"
    peak "export $size as bf16" "$program" export "$work/$size-ckpt" -o "$work/$size-out" --dtype bf16
    rm -rf "$work/$size" "$work/$size-ckpt" "$work/$size-out"
  done
else
  "$python" bench/hf_models.py --program "$program" --work "$work"
fi
