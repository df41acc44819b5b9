#!/usr/bin/env bash
# Builds transformer3d and runs its tests; installs missing packages first (as root or with sudo).
#
#   tests/run.sh                 everything but the tests of label "slow"; long ones take turns by the commit
#   tests/run.sh --label mpi     only tests of this label (unit, ops, bench, mpi, system, slurm, lint, ...)
#   tests/run.sh --label fuzz    only the parsers under libFuzzer, a minute each
#   tests/run.sh --full          also label "slow", all long ones, fuzzing, the quick tests under the address
#                                and the undefined-behaviour sanitizer, the build by clang, and the build
#                                on Debian 13; here no test may be skipped for want of a Slurm cluster
#   tests/run.sh ... -- ARGS     ARGS go to ctest
#
# The last line but CTest's times is CTest's summary; the exit status is 0 when all passed.
set -euo pipefail
cd "$(dirname "$0")/.."
source jobs/packages.sh
full=0
label=""
while (($#)); do
  case "$1" in
    --full) full=1; shift ;;
    --label) label=${2:?--label needs a name}; shift 2 ;;
    --) shift; break ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "tests/run.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
packages_install test
# tests/slurm, which are skipped where this cannot be.
[[ -n "${T3D_IN_CHROOT:-}" ]] || packages_install slurm || echo "--- going on without Slurm"
# tests/system/installed.sh leaves out what is not there.
[[ -n "${T3D_IN_CHROOT:-}" ]] || packages_install shells || echo "--- going on without zsh, man and module files"

# Many tests start several ranks; Catch2 files compile in about 1 GB each.
cores=$(nproc)
memory_gib=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
jobs=$cores
((memory_gib < jobs)) && jobs=$((memory_gib > 1 ? memory_gib : 1))
tests_at_once=$((cores > 2 ? (cores < 8 ? cores : 8) : 2))

build() { # preset, options of CMake
  mkdir -p "build/$1"
  if ! cmake --preset "$1" -DT3D_TESTS=ON "${@:2}" > "build/$1/configure.log" 2>&1; then
    cat "build/$1/configure.log" >&2
    return 1
  fi
  cmake --build --preset "$1" -j "$jobs"
}
run_tests() { # preset, arguments of ctest
  local preset=$1
  shift
  ctest --preset "$preset" -j "$tests_at_once" --no-tests=error "$@"
}

# The GPU back end must compile wherever a CUDA toolkit is, also without a GPU: for one architecture
# here, for all in a release. It is built beside that of CPUs, so that all else is compiled once.
cuda=()
find_cuda() {
  local nvcc
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null || true)
  if [[ -n "$nvcc" ]]; then
    cuda=(-DT3D_CUDA_BESIDE=ON -DCMAKE_CUDA_ARCHITECTURES=90a-real "-DCMAKE_CUDA_COMPILER=$nvcc")
  else
    echo "--- no CUDA toolkit here: the GPU back end is not compiled"
  fi
}

# Every parser of files from elsewhere under libFuzzer (tests/fuzz), a minute each, all at once:
# what counts is that each has its minute, not how far it comes.
fuzz() {
  [[ -n "${T3D_IN_CHROOT:-}" ]] || packages_install clang || true
  if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -x c++ - -fsanitize=fuzzer,address,undefined -o /dev/null 2> /dev/null; then
    echo "--- no clang with libFuzzer here: the parsers are not fuzzed (jobs/packages.sh install clang)"
    return 0
  fi
  build fuzz && ctest --preset fuzz -j 8 --no-tests=error "$@"
}

select=()
[[ -n "$label" ]] && select+=(-L "^$label\$")
if [[ "$label" == fuzz ]]; then
  fuzz "$@"
  exit 0
fi
if ((!full)); then
  [[ -n "$label" ]] || find_cuda
  build cpu "${cuda[@]}"
  [[ "$label" == slow ]] || select+=(-LE '^slow$')
  echo "--- long tests of commit number $(git rev-list --count HEAD 2> /dev/null || echo 0) (tests/support/turn.sh)"
  run_tests cpu "${select[@]}" "$@"
  exit 0
fi

export T3D_LINT_ALL=1
failed=()
attempt() { echo "--- $*"; "$@" || failed+=("$*"); }
find_cuda
build cpu "${cuda[@]}"
attempt tests/slurm/cluster.sh can # else the tests of label slurm are skipped
attempt packages_install clang
attempt packages_install pages # else reports are not looked at in a browser, nor tables set by LaTeX
attempt build clang # compiles and links; the numbers of its kernels are not checked
attempt fuzz
for preset in asan ubsan; do
  attempt build "$preset"
  attempt run_tests "$preset" -L '^(unit|ops)$' "$@"
done
if [[ $(id -u) == 0 && -z "${T3D_IN_CHROOT:-}" ]]; then
  attempt tests/portability.sh
else
  echo "--- the build on Debian 13 was left out: it needs root"
fi
attempt run_tests cpu "${select[@]}" "$@"
if ((${#failed[@]})); then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
