# Sourced by the head and the nodes, in a namespace with mounts of its own: what each machine has for
# itself, folders and a munged.

# private_folders [WITHOUT_OUTSIDE SHARED...]: /run, with DIR in it; for a node also /proc, /dev/shm
# and /tmp, where only DIR and SHARED stay what they were.
private_folders() {
  local path
  exec {folder}< "$dir"
  mount -t tmpfs -o mode=755 run /run
  mkdir "$inside"
  mount -c --bind "/proc/self/fd/$folder" "$inside"
  mount --bind "$inside/hosts" /etc/hosts
  # Commands that find no SLURM_CONF (sbatch --export=NONE) look here.
  if [[ -d /etc/slurm ]]; then mount --bind "$inside" /etc/slurm; fi
  if (($#)); then
    mkdir /run/outside
    mount --bind /tmp /run/outside
    mount -t proc proc /proc
    mount -t tmpfs shm /dev/shm
    mount -t tmpfs tmp /tmp
    for path in "$dir" "$@"; do
      [[ "$path" == /tmp/?* ]] || continue
      mkdir -p "$path"
      mount --bind "/run/outside/${path#/tmp/}" "$path"
    done
    umount /run/outside
  fi
  exec {folder}<&-
}

# As $munged. One for all nodes would have to answer 64 at once, and refuses some.
start_munged() {
  munged --foreground --force --key-file="$inside/munge.key" --socket="$munge_socket" \
    --pid-file=/run/munged.pid --seed-file=/run/munged.seed 2>> "$inside/log/munged.log" &
  munged=$!
  until [[ -S "$munge_socket" ]]; do sleep 0.02; done
}
