#!/usr/bin/env bash
# Begin, end and ids of models in and out, beside transformers 4.57 and 5 (docs/results/special_tokens.md).
#
#   bench/special_tokens.sh [PAGE]
#
# Installs torch and both versions below build/. Appends a table for each version to PAGE.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$PWD/build/cpu/transformer3d
[[ -x $program && -x build/cpu/bench/t3d_bench_tokenizers ]] ||
  { echo "special_tokens: build first: cmake --preset cpu && cmake --build --preset cpu" >&2; exit 66; }
python=${PYTHON:-build/venv/bin/python}
if ! "$python" -c 'import sentencepiece, torch' 2> /dev/null; then
  python3 -m venv build/venv
  build/venv/bin/pip install -q torch numpy sentencepiece protobuf safetensors
  python=build/venv/bin/python
fi
for version in 4.57 5; do
  folder=build/transformers-$version
  [[ -d $folder ]] || "$python" -m pip install -q --target "$folder" "transformers==$version.*"
  PYTHONPATH=$folder "$python" bench/special_tokens.py --program "$program" ${1:+--page "$1"}
done
