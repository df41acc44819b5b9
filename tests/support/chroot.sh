# Sourced by tests that need another Debian: a chroot made by debootstrap, with the mirror, proxies,
# certificates and credentials that apt uses on this host. Set `root` (its folder) and `suite` first.
#
#   chroot_can             whether this host can do it; says why not
#   chroot_make            debootstrap, once; $root.log
#   chroot_settings        apt inside as apt outside
#   chroot_mount           /proc, /dev, /sys, shared memory; unmounted when the script ends
#   inside COMMAND...      in the chroot, with a plain environment

chroot_can() {
  if [[ $(id -u) != 0 ]]; then
    echo "needs root (chroot and mounts); nothing was done" >&2
    return 69
  fi
  if ! command -v debootstrap > /dev/null; then
    apt-get install -q -y --no-install-recommends debootstrap > /dev/null || {
      echo "please install debootstrap" >&2
      return 69
    }
  fi
  # The first archive that apt on this host uses for the distribution itself.
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(ORIGIN) $(LABEL)' |
    awk '$2 == "main" && /Debian$/ && !/[Ss]ecurity/ {print $1; exit}')
  if [[ -z "$mirror" ]]; then
    echo "no Debian archive among apt's sources on this host" >&2
    return 69
  fi
}

chroot_make() {
  local proxy value script
  [[ ! -e "$root/.t3d-base" ]] || return 0
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
    echo "debootstrap failed" >&2
    return 69
  }
  touch "$root/.t3d-base"
}

# Proxies and other settings, credentials, certificates, name resolution. Settings that belong to one
# host's packages (docker, packagekit, ...) do not matter and stay out.
chroot_settings() {
  local file
  rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
  echo "deb $mirror $suite main" > "$root/etc/apt/sources.list"
  grep -lsE '^[^/#]*Acquire' /etc/apt/apt.conf /etc/apt/apt.conf.d/* 2> /dev/null |
    while read -r file; do cp -f "$file" "$root/etc/apt/apt.conf.d/90host-$(basename "$file")"; done || true
  [[ -e /etc/apt/auth.conf ]] && cp -f /etc/apt/auth.conf "$root/etc/apt/"
  for file in /etc/apt/auth.conf.d/*; do [[ -e $file ]] && cp -f "$file" "$root/etc/apt/auth.conf.d/"; done
  cp -fL /etc/resolv.conf /etc/hosts "$root/etc/" 2> /dev/null || true
  mkdir -p "$root/etc/ssl/certs"
  cp -fL /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2> /dev/null || true
}

mounted=()
unmount_all() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; --i)); do umount "${mounted[$i]}" || umount -l "${mounted[$i]}"; done
  mounted=()
}
mount_in() { # type or --bind, source, place
  mkdir -p "$root/$3"
  mountpoint -q "$root/$3" && return
  # private: what is mounted inside must not appear on this host
  if [[ $1 == --bind ]]; then mount --bind --make-private "$2" "$root/$3"; else mount -t "$1" "$2" "$root/$3"; fi
  mounted+=("$root/$3")
}
chroot_mount() {
  trap unmount_all EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mount_in proc proc proc
  mount_in --bind /dev dev
  mount_in tmpfs tmpfs dev/shm
  mount_in devpts devpts dev/pts
  mount_in --bind /sys sys
}

inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    TERM=dumb DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/root/ccache T3D_IN_CHROOT=1 "$@"
}
