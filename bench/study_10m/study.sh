#!/usr/bin/env bash
# Strong and weak scaling of a model of 10.7 million parameters on 1, 2, 4 and 8 ranks, and their check by another program.
#
#   bench/study_10m/study.sh local build/cpu/transformer3d OUT [STEPS [REPEATS]]
#   bench/study_10m/study.sh cluster build/cpu/transformer3d OUT [STEPS [REPEATS]]
#
# local: runs on this machine. cluster: two array jobs on a Slurm of 64 nodes that are namespaces of this machine (needs root, and OUT
# below /tmp, PROGRAM not: its nodes have a /tmp of their own); marked "emulated", since its nodes share processors and memory, and messages never leave it. By default 8 steps, of which two
# are warm-up, and 5 repeats: some minutes on 2 cores. OUT/strong and OUT/weak are the studies, with tables, pictures and rooflines.
set -euo pipefail
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 64; }
(($# >= 3)) || usage
kind=$1 program=$(realpath "$2") out=$(realpath -m "$3") steps=${4:-8} repeats=${5:-5}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
source "$root/jobs/mpi_here.sh"
mkdir -p "$out"
cd "$out"
[[ -e text.txt ]] || cat "$root"/src/core/*.cpp "$root"/src/train/*/*.cpp > text.txt
options=(--ranks 1,2,4,8 --steps "$steps" --repeat "$repeats" --spread 0)
weak=(--weak --set batch.sequences=2)

study() { # NAME OPTIONS...
  "$program" scaling "$here/input.toml" "${options[@]}" -o "$@"
}
# The numbers once more from the logs; the table set by LaTeX, where there is one.
check() { # NAME
  python3 "$root/tests/support/study_numbers.py" "$1"
  if command -v pdflatex > /dev/null && kpsewhich booktabs.sty > /dev/null; then
    printf '\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\tiny\\input{%s/scaling}\\end{document}' "$1" > "$1.tex"
    pdflatex -interaction=nonstopmode -halt-on-error "$1.tex" > "$1.pdflatex.log"
  else
    echo "no pdflatex with booktabs: $1/scaling.tex was not set"
  fi
}

SECONDS=0
case $kind in
  local)
    study strong
    study weak "${weak[@]}"
    ;;
  cluster)
    tool=$root/tests/slurm/cluster.sh
    bash "$tool" start "$out/slurm" 64 --with $$
    trap 'bash "$tool" stop "$out/slurm"' EXIT
    eval "$(bash "$tool" env "$out/slurm")"
    echo "64 nodes after $SECONDS s"
    study strong --slurm
    study weak "${weak[@]}" --slurm
    for name in strong weak; do
      sbatch --wait "$name/study.sbatch" || { tail -n 5 "$name"/slurm-*.log >&2 && false; }
      echo "$name: done after $SECONDS s"
      "$program" scaling --collect "$name"
    done
    ;;
  *) usage ;;
esac
check strong
check weak
echo "all done after $SECONDS s; figures in $out/strong and $out/weak"
