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
if [[ $(id -u) != 0 ]]; then
  echo "portability: needs root (chroot and mounts); nothing was done" >&2
  exit 69
fi
if ! command -v debootstrap > /dev/null; then
  apt-get install -q -y --no-install-recommends debootstrap > /dev/null || {
    echo "portability: please install debootstrap" >&2
    exit 69
  }
fi

# The first archive that apt on this host uses for the distribution itself.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(ORIGIN) $(LABEL)' |
  awk '$2 == "main" && /Debian$/ && !/[Ss]ecurity/ {print $1; exit}')
if [[ -z "$mirror" ]]; then
  echo "portability: no Debian archive among apt's sources on this host" >&2
  exit 69
fi

mounted=()
unmount_all() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; --i)); do umount "${mounted[$i]}" || umount -l "${mounted[$i]}"; done
  mounted=()
}
trap unmount_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mount_in() { # type or --bind, source, place
  mkdir -p "$root/$3"
  mountpoint -q "$root/$3" && return
  # private: what is mounted inside must not appear on this host
  if [[ $1 == --bind ]]; then mount --bind --make-private "$2" "$root/$3"; else mount -t "$1" "$2" "$root/$3"; fi
  mounted+=("$root/$3")
}

if [[ ! -e "$root/.t3d-base" ]]; then
  echo "portability: $suite in $root"
  mkdir -p "$root"
  if proxy=$(apt-config shell value Acquire::http::Proxy) && [[ -n "$proxy" ]]; then
    eval "$proxy"
    export http_proxy=$value
  fi
  script=$suite
  [[ -e /usr/share/debootstrap/scripts/$suite ]] || script=sid
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" \
    "/usr/share/debootstrap/scripts/$script" > "$root.log" 2>&1 || {
    tail -n 5 "$root.log" >&2
    echo "portability: debootstrap failed" >&2
    exit 69
  }
  touch "$root/.t3d-base"
fi

# apt inside as apt outside: proxies and other settings, credentials, certificates, name resolution.
# Settings that belong to one host's packages (docker, packagekit, ...) do not matter and stay out.
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
echo "deb $mirror $suite main" > "$root/etc/apt/sources.list"
grep -lsE '^[^/#]*Acquire' /etc/apt/apt.conf /etc/apt/apt.conf.d/* 2> /dev/null |
  while read -r file; do cp -f "$file" "$root/etc/apt/apt.conf.d/90host-$(basename "$file")"; done || true
[[ -e /etc/apt/auth.conf ]] && cp -f /etc/apt/auth.conf "$root/etc/apt/"
for file in /etc/apt/auth.conf.d/*; do [[ -e $file ]] && cp -f "$file" "$root/etc/apt/auth.conf.d/"; done
cp -fL /etc/resolv.conf /etc/hosts "$root/etc/" 2> /dev/null || true
mkdir -p "$root/etc/ssl/certs"
cp -fL /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2> /dev/null || true

mount_in proc proc proc
mount_in --bind /dev dev
mount_in tmpfs tmpfs dev/shm
mount_in devpts devpts dev/pts
mount_in --bind /sys sys
inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    TERM=dumb DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/root/ccache T3D_IN_CHROOT=1 "$@"
}

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
