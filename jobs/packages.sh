#!/usr/bin/env bash
# The one table of packages: everything that builds, tests and shows transformer3d, by logical name.
#
#   jobs/packages.sh list            the table
#   jobs/packages.sh missing [SET]   names of the Debian packages that are not installed
#   jobs/packages.sh install [SET]   installs them with apt-get (as root, or through sudo), else says
#                                    plainly what is missing and ends with 69 ("unavailable")
#
# SET: build (default) = what the binary needs; test = and the tests; demo = and jobs/quickstart.sh;
# corpus = and the text that it takes where it is; slurm = and the Slurm of tests/slurm; clang = and the
# second compiler of tests/run.sh, with libFuzzer; shells = and what shows manual, completions and module files;
# pages = and what shows reports and sets tables, for tests/run.sh --full; all. Other scripts source this file
# and call packages_install SET.
# Tried on Debian 12 and Debian 13 (tests/portability.sh). Elsewhere use the Spack column.

# logical name   | set   | Debian, Ubuntu                      | Spack
packages_table() {
  cat <<'TABLE'
c++20 compiler   | build | g++                                 | gcc@12:
cmake            | build | cmake                               | cmake@3.24:
ninja            | build | ninja-build                         | ninja
ccache           | build | ccache                              | ccache
linker           | build | lld                                 | llvm+lld
git              | build | git                                 | git
mpi              | build | libopenmpi-dev openmpi-bin          | openmpi
hdf5             | build | libhdf5-dev hdf5-tools              | hdf5+hl~mpi
kokkos           | build | libtrilinos-kokkos-dev              | kokkos
onednn           | build | libdnnl-dev                         | onednn
toml++           | build | libtomlplusplus-dev                 | tomlplusplus
cli11            | build | libcli11-dev                        | cli11
fmt              | build | libfmt-dev                          | fmt
nlohmann json    | build | nlohmann-json3-dev                  | nlohmann-json
sentencepiece    | build | libsentencepiece-dev                | sentencepiece
icu              | build | libicu-dev                          | icu4c
oniguruma        | build | libonig-dev                         | oniguruma
isa-l            | build | libisal-dev                         | isa-l
zstd             | build | libzstd-dev                         | zstd
catch2           | test  | catch2                              | catch2
python           | test  | python3                             | python
h5py             | test  | python3-h5py                        | py-h5py
numpy            | test  | python3-numpy                       | py-numpy
boost.context    | test  | libboost-context-dev                | boost+context
slurm            | slurm | slurm-wlm                           | slurm+pmix
munge            | slurm | munge                               | munge
ip               | slurm | iproute2                            | iproute2
manual           | shells| man-db                              | man-db
zsh              | shells| zsh                                 | zsh
modules          | shells| lmod                                | lmod
browser          | pages | chromium                            | -
latex            | pages | texlive-latex-base texlive-latex-recommended | texlive
clang            | clang | clang libomp-dev libclang-rt-dev    | llvm+clang+lld llvm-openmp
python           | demo  | python3                             | python
english text     | corpus| bible-kjv                           | -
TABLE
}

# packages_of SET COLUMN: names in column 3 (Debian) or 4 (Spack) of a set and of the sets it holds.
packages_of() {
  packages_table | awk -F'|' -v set="${1:-build}" -v column="$2" '
    function trim(s) { gsub(/^ +| +$/, "", s); return s }
    { own = trim($2); name = trim($column)
      if (name != "-" && (own == "build" || own == set || set == "all")) print name }' |
    tr ' ' '\n' | awk 'NF && !seen[$0]++'
}

packages_have_apt() { command -v apt-get > /dev/null && command -v dpkg-query > /dev/null; }

packages_missing() {
  local name
  for name in $(packages_of "${1:-build}" 3); do
    # "install ok installed", also of another package that provides this name
    [[ "$(dpkg-query -W -f '${Status}' "$name" 2> /dev/null)" == *"ok installed" ]] || echo "$name"
  done
}

packages_say_missing() {
  {
    echo "transformer3d: $1"
    echo "  Debian names: $2"
    echo "  Spack names:  $(packages_of "$3" 4 | tr '\n' ' ')"
    echo "  with Debian:  apt-get install $2"
  } >&2
}

# Where nothing can be installed: modules or Spack may have everything already, and CMake is the
# judge of that. Without cmake and mpirun there is nothing to judge.
packages_go_on() { # why, Debian names, SET
  if command -v cmake > /dev/null && command -v mpirun > /dev/null; then
    echo "packages: $1; going on with what the environment offers (Debian's names: $2)" >&2
    return 0
  fi
  packages_say_missing "$1; please provide these packages:" "$2" "$3"
  return 69
}

packages_install() {
  local set="${1:-build}" missing log as_root=()
  if ! packages_have_apt; then
    packages_go_on "this system has no apt-get" "$(packages_of "$set" 3 | tr '\n' ' ')" "$set"
    return
  fi
  missing=$(packages_missing "$set" | tr '\n' ' ')
  if [[ -z "$missing" ]]; then
    return 0
  fi
  if [[ $(id -u) != 0 ]]; then
    if command -v sudo > /dev/null && { sudo -n true 2> /dev/null || [[ -t 0 ]]; }; then
      as_root=(sudo)
    else
      packages_go_on "not root and no sudo" "$missing" "$set"
      return
    fi
  fi
  echo "packages: installing $missing"
  log=$(mktemp)
  # shellcheck disable=SC2086  # a list of names
  if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
      --no-install-recommends -o Dpkg::Use-Pty=0 $missing; } > "$log" 2>&1; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    packages_say_missing "apt-get failed (its last lines are above); still missing:" \
      "$(packages_missing "$set" | tr '\n' ' ')" "$set"
    return 69
  fi
  rm -f "$log"
}

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  case "${1:-}" in
    list) packages_table ;;
    missing) packages_missing "${2:-build}" ;;
    install) packages_install "${2:-build}" ;;
    *)
      sed -n '2,13s/^# \{0,1\}//p' "$0"
      [[ "${1:-}" == -h || "${1:-}" == --help ]] || exit 64
      ;;
  esac
fi
