#!/usr/bin/env bash
# What a launcher returns for a training of two ranks that ends in each way, beside the program's own
# code in exit.json: the table in docs/03-running.md. Linux; a minute.
#   bench/launcher_status.sh build/cpu/transformer3d mpirun -n 2 --oversubscribe
#   bench/launcher_status.sh build/cpu/transformer3d srun -n 2 --mpi=pmix
set -um
program=$(realpath "$1")
shift
launch=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 74
yes "the ships sail at dawn" | head -c 20000 > text.txt
cat > input.toml <<'TOML'
version = 1
[run]
name = "t"
steps = 1000000
[model]
layers = 1
hidden = 32
heads = 4
context = 32
vocab = 256
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 8
[mesh]
cuboid = [2, 1, 1]
[log]
every_steps = 1000000
[debug]
watchdog_seconds = 5
TOML

begin() { # DIR args...: in the background as $job
  local folder=$1
  shift
  "${launch[@]}" "$program" input.toml -d "$folder" "$@" > "$folder.log" 2>&1 &
  job=$!
}
after_two_steps() { # DIR
  until [[ -s $1/log.jsonl && $(wc -l < "$1/log.jsonl") -ge 2 ]]; do
    kill -0 $job 2> /dev/null || break
    sleep 0.05
  done
}
ranks() { # DIR: the processes of its training
  local process
  for process in /proc/[0-9]*; do
    [[ $(cat "$process/comm" 2> /dev/null) == "${program##*/}" ]] || continue
    tr '\0' ' ' < "$process/cmdline" | grep -q -- "-d $1 " && echo "${process#/proc/}"
  done
}
row() { # DIR WHAT
  local status code tries=0
  while kill -0 $job 2> /dev/null && ((++tries < 200)); do sleep 0.1; done
  if kill -0 $job 2> /dev/null; then
    # shellcheck disable=SC2046
    kill -s TERM $(ranks "$1")
    wait $job
    status="goes on"
  else
    wait $job
    status=$?
  fi
  code=$(sed -n 's/.*"code": \([0-9]*\).*/\1/p' "$1/exit.json" 2> /dev/null)
  echo "| $2 | $status | ${code:-none} |"
}

echo "| ${launch[*]} | status | code in exit.json |"
echo "|---|---:|---:|"
begin done --set run.steps=3
row done "all steps done"
begin wrong --set model.hidden=-1
row wrong "bad input"
begin diverged --set optimizer.lr=1e30
row diverged "divergence"
for signal in TERM INT HUP USR1 USR2; do
  begin "all-$signal" --set run.name=x
  after_two_steps "all-$signal"
  kill -s $signal $job
  row "all-$signal" "$signal to the launcher"
done
for signal in TERM USR1 USR2; do
  begin "each-$signal" --set run.name=x
  after_two_steps "each-$signal"
  # shellcheck disable=SC2046
  kill -s $signal $(ranks "each-$signal")
  row "each-$signal" "$signal to every rank"
done
begin killed --set run.name=x
after_two_steps killed
kill -KILL "$(ranks killed | tail -n 1)"
row killed "one rank killed"
