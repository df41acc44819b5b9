# docs/20-install.md: a build where libraries are missing names all of them at once, each with its Debian packages and its Spack name.
. "$T3D_SOURCE/tests/support/job.sh"
source "$T3D_SOURCE/jobs/packages.sh"
cache=$(dirname "$T3D_BIN")/CMakeCache.txt
folder=$(dirname "$(sed -n 's/^isal_LIBRARY:FILEPATH=//p' "$cache")")
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$cache")
cmake -S "$T3D_SOURCE" -B without -G Ninja "-DCMAKE_CXX_COMPILER=$compiler" -DCMAKE_DISABLE_FIND_PACKAGE_ICU=ON \
  "-DCMAKE_IGNORE_PATH=$folder;${folder#/usr}" > out.log 2>&1 && fail "configured without ICU and what lies in $folder"
[[ $(grep -c '^CMake Error' out.log) == 1 ]] || fail "more errors than the one that names everything"
for name in isa-l icu; do
  row=$(packages_table | grep "^$name ")
  debian=$(cut -d '|' -f 3 <<< "$row" | xargs)
  spack=$(cut -d '|' -f 4 <<< "$row" | xargs)
  sed -n "/^ *$name\$/,/CMake did not find/p" out.log > told.txt
  [[ -s told.txt ]] || fail "$name is not named"
  grep -qE "Debian.*: $debian\$" told.txt || fail "$name without its Debian packages"
  grep -q "Spack: $spack\$" told.txt || fail "$name without its Spack name"
done
expect_text "isal_LIBRARY"
