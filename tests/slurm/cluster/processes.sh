# Sourced: the processes of a cluster by name, in files $dir/pids/NAME of lines "pid starttime". A
# process is signalled only while its start time is the recorded one: the system may have given the
# number to somebody else.

# start_time PID: in clock ticks since the machine started
start_time() {
  local line
  read -r line 2> /dev/null < "/proc/$1/stat" || return 1
  # shellcheck disable=SC2086  # behind the name, which may hold blanks
  set -- ${line##*) }
  echo "${20}"
}

# record_self NAME: by the process itself, before it does anything else. In a new PID namespace it
# does not know its number outside, but the old /proc does.
record_self() {
  local line pid
  read -r line < /proc/self/stat
  pid=${line%% *}
  # shellcheck disable=SC2086
  set -- "$1" ${line##*) }
  echo "$pid ${21}" >> "$dir/pids/$1"
}

# in_background NAME COMMAND...: of a session of its own, recorded
in_background() {
  local name=$1
  shift
  rm -f "$dir/pids/$name"
  # shellcheck disable=SC2016
  setsid bash -c 'dir=$1 name=$2; source "$3"; record_self "$name"; shift 3; exec "$@"' \
    "$name" "$dir" "$name" "${BASH_SOURCE[0]}" "$@" < /dev/null >> "$dir/log/$name.log" 2>&1 &
  disown
}

recorded() { ls "$dir/pids"; }

# pid_of NAME: of its last recorded process
pid_of() { awk 'END { print $1 }' "$dir/pids/$1"; }

# living NAME...: the pids that are still the recorded processes, without this one
living() {
  local name pid started
  for name; do
    [[ -e "$dir/pids/$name" ]] || continue
    while read -r pid started; do
      if [[ "$pid" != "$$" && "$(start_time "$pid")" == "$started" ]]; then echo "$pid"; fi
    done < "$dir/pids/$name"
  done
}
is_alive() { [[ -n "$(living "$@")" ]]; }
is_gone() { [[ -z "$(living "$@")" ]]; }

signal_recorded() { # SIGNAL NAME...
  local signal=$1 pids
  shift
  pids=$(living "$@")
  # shellcheck disable=SC2086
  [[ -z "$pids" ]] || kill -s "$signal" $pids 2> /dev/null || true
}

wait_until() { # SECONDS WHAT COMMAND...
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    if ((SECONDS >= deadline)); then
      echo "cluster.sh: waited in vain until $what; see $dir/log" >&2
      return 1
    fi
    sleep 0.05
  done
}
