#!/usr/bin/env bash
# Builds and tests this tree on another Debian release, in a chroot made by debootstrap.
#
#   tests/portability.sh [--suite trixie] [--root DIR] [--packages-only] [-- arguments of tests/run.sh]
#
# The chroot is kept in --root (default build/portability/SUITE) and reused, so only the first run
# downloads. It takes the mirror, proxies, certificates and credentials that apt uses on this host,
# installs the packages of jobs/packages.sh, copies the tree as git sees it (untracked files that are
# not ignored too), and runs tests/run.sh inside: the same command as everywhere.
# Needs root (mounts, chroot), debootstrap and about 4 GB of disk.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
suite=trixie
root=""
packages_only=0
while (($#)); do
  case "$1" in
    --suite) suite=$2; shift 2 ;;
    --root) root=$2; shift 2 ;;
    --packages-only) packages_only=1; shift ;;
    --) shift; break ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "portability: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
done
root=${root:-$here/build/portability/$suite}
source "$here/tests/support/chroot.sh"
chroot_can
[[ -e "$root/.t3d-base" ]] || echo "portability: $suite in $root"
chroot_make
chroot_settings
chroot_mount

# The tree as git sees it; what was deleted here disappears there, build/ there stays.
mkdir -p "$root/root/transformer3d"
(cd "$root/root/transformer3d" && find . -mindepth 1 -maxdepth 1 ! -name build ! -name runs -exec rm -rf {} +)
git -C "$here" ls-files -z --cached --others --exclude-standard |
  (cd "$here" && while IFS= read -r -d '' file; do [[ -e $file ]] && printf '%s\0' "$file"; done) |
  tar -C "$here" --null -T - -cf - | tar -C "$root/root/transformer3d" --no-same-owner -xf -

inside bash /root/transformer3d/jobs/packages.sh install test
inside sh -c 'echo "portability: $(. /etc/os-release && echo "$PRETTY_NAME"), $(g++ --version | head -n 1),
  $(cmake --version | head -n 1), $(mpirun --version | head -n 1)"'
((packages_only)) && exit 0
inside bash -c 'cd /root/transformer3d && exec tests/run.sh "$@"' run "$@"
