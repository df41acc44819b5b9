#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds, trains a small language
# model on real English with 8 ranks as a 2 x 2 x 2 cuboid, compares it with xz, and lets it write.
#
#   jobs/quickstart.sh [--fresh] [--ranks 8|4|2|1] [--prompt TEXT]
#
# Ctrl-C stops it; a second call continues where the first stopped, and only shows the result when all is
# done. --fresh starts over. All files are in build/cpu and runs/quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobs/packages.sh
source jobs/mpi_here.sh

vocab=8192
run=runs/quickstart
fresh=0
ranks=""
prompt="In the beginning"
while (($#)); do
  case "$1" in
    --fresh) fresh=1; shift ;;
    --ranks) ranks=${2:?--ranks needs a number}; shift 2 ;;
    --prompt) prompt=${2:?--prompt needs a text}; shift 2 ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
say() { printf '\n== %s\n' "$*"; }
# Everything is written below this folder: better told now than after the build.
may_write() { # FOLDER, or the nearest one above it that exists
  local folder=$1
  until [[ -e $folder ]]; do folder=$(dirname "$folder"); done
  if [[ -d $folder && -w $folder && -x $folder ]]; then return; fi
  echo "quickstart: $(id -un) may not write to $(realpath "$folder"), which belongs to $(stat -c %U "$folder")." >&2
  echo "Clone or copy the repository into a folder of your own and call quickstart there." >&2
  exit 74
}
may_write build/cpu
may_write "$run"
trap 'echo; echo "quickstart: stopped; call it again to continue"; exit 130' INT TERM

say "packages"
packages_install demo
packages_install corpus || echo "continuing with another text"
echo "all there"

say "build"
mkdir -p build/cpu
# -DT3D_TESTS=OFF only in a new build folder: a developer's folder keeps its tests
[[ -e build/cpu/build.ninja ]] || cmake --preset cpu -DT3D_TESTS=OFF > build/cpu/configure.log ||
  { cat build/cpu/configure.log >&2; exit 1; }
cmake --build --preset cpu --target transformer3d
bin=build/cpu/transformer3d

say "text"
((fresh)) && rm -rf "$run"
export PATH=$PATH:/usr/games # where some releases keep `bible`
mkdir -p "$run"
[[ -s $run/corpus.json ]] || /usr/bin/env python3 jobs/prepare_corpus.py "$run"
fact() { sed -n "s/.*\"$1\": \([0-9.e-]*\).*/\1/p" "$run/corpus.json"; }
# Each file is written under another name first, so that Ctrl-C leaves no half one behind. The tokenizer
# learns from the training text only; the held-out text is cut with it.
if [[ ! -s $run/train.h5 ]]; then
  "$bin" tokenize "$run/train.txt" -o "$run/new" --kind bpe --vocab "$vocab"
  mv "$run/new-train.h5" "$run/train.h5"
fi
if [[ ! -s $run/held_out.h5 ]]; then
  "$bin" tokenize "$run/held_out.txt" -o "$run/new" --model "$run/train.h5"
  mv "$run/new-train.h5" "$run/held_out.h5"
fi
echo "$(fact bytes) bytes, of which $(fact held_out_bytes) are held out"

say "training"
# 8 ranks even on 2 cores: that is the point. Fewer only where 8 do not fit in memory.
if [[ -z "$ranks" ]]; then
  free_mib=$(awk '/MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  ranks=8
  while ((ranks > 1 && free_mib < 300 * ranks)); do ranks=$((ranks / 2)); done
fi
case "$ranks" in
  8) cuboid="[2, 2, 2]" ;;
  4) cuboid="[1, 2, 2]" ;;
  2) cuboid="[1, 1, 2]" ;;
  1) cuboid="[1, 1, 1]" ;;
  *) echo "quickstart: --ranks must be 8, 4, 2 or 1" >&2; exit 64 ;;
esac
steps=$(sed -n 's/^steps *= *\([0-9]*\).*/\1/p' inputs/quickstart.toml)
last=$(printf '%s/ckpt/step-%08d' "$run" "$steps")
if [[ -d $last ]]; then
  echo "already trained ($steps steps); --fresh starts over"
else
  compgen -G "$run/ckpt/step-????????" > /dev/null && echo "continuing from the last checkpoint"
  echo "$ranks ranks as cuboid $cuboid on $(getconf _NPROCESSORS_ONLN) cores"
  SECONDS=0
  status=0
  # In a session of its own, so that Ctrl-C reaches this script only: Open MPI kills ranks a second after
  # an INT, and a checkpoint may take longer. USR1 it passes on, and waits.
  setsid mpirun -n "$ranks" --oversubscribe "$bin" inputs/quickstart.toml \
    --set "mesh.cuboid=$cuboid" --set "run.dir=$run" < /dev/null &
  training=$!
  trap 'echo; echo "quickstart: stopping after this step, with a checkpoint"; kill -USR1 "$training" || true' INT TERM
  while kill -0 "$training" 2> /dev/null; do
    status=0
    wait "$training" || status=$?
  done
  if ((status != 0)); then
    echo "quickstart: training ended with exit code $status after $SECONDS s; call it again to continue" >&2
    exit "$status"
  fi
  echo "$SECONDS s of training"
fi

say "result on the held-out text"
"$bin" eval "$last" "$run/held_out.h5" | tee "$run/eval.txt"
bits=$(grep -ioE 'bits per byte[^0-9]*[0-9.]+|[0-9.]+ bits per byte' "$run/eval.txt" | tail -n 1 |
  grep -oE '[0-9]+\.[0-9]+' || true)
awk -v ours="${bits:-?}" -v alone="$(fact xz_alone)" -v after="$(fact xz_after)" 'BEGIN {
  print ""
  printf "  transformer3d                          %s bits per byte\n", ours
  printf "  xz -9, held-out text alone             %s bits per byte\n", alone
  printf "  xz -9, having seen the training text   %s bits per byte\n", after
  if (ours != "?" && ours < alone) printf "  The model beats xz: 1 byte of text in %.2f bits less.\n", alone - ours
}'

say "a text by the model (prompt: $prompt)"
"$bin" generate "$last" --prompt "$prompt" --tokens 120 --temperature 0.8 --top-k 40 --seed 1
