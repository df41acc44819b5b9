# Sourced by tests/slurm/*.sh, after them job.sh: a test cluster in the folder `cluster` of the test,
# waiting for states of its jobs. Without a cluster the test ends with 77, which CTest calls skipped.
source "$T3D_SOURCE/tests/support/job.sh"
cluster_tool=$T3D_SOURCE/tests/slurm/cluster.sh
bash "$cluster_tool" can || exit

cluster() { bash "$cluster_tool" "$1" "$PWD/cluster" "${@:2}"; }

# start_cluster N [options]: it ends with this script, however that ends
start_cluster() {
  cluster start "$1" --with $$ "${@:2}" || fail "no cluster"
  eval "$(cluster env)"
  trap 'cluster stop' EXIT
}

job_field() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
job_state() { job_field "$1" JobState | head -n 1; } # of a heterogeneous job: of its first component

# in_time SECONDS WHAT COMMAND...; on a machine that is not ours alone, T3D_PATIENCE (1) times as long
in_time() {
  local deadline=$((SECONDS + $1 * ${T3D_PATIENCE:-1})) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || { squeue >&2; fail "not in time: $what"; }
    sleep 0.1
  done
}
is_in_state() { [[ "$(job_state "$1")" == "$2" ]]; }
wait_for_state() { in_time "$3" "job $1 is $2" is_in_state "$1" "$2"; } # JOB STATE SECONDS

# submitted ARGUMENTS...: job id of a script; its own options come before
submitted() { sbatch --parsable "$@" || fail "not submitted: $*"; }
has_done() { grep -qs "\"step\":$2," "$1/log.jsonl"; } # RUN STEP
seconds_waited() { # JOB: from submission to start; Slurm knows whole seconds only
  echo $(($(date -d "$(job_field "$1" StartTime)" +%s) - $(date -d "$(job_field "$1" SubmitTime)" +%s)))
}

# same_tensors CHECKPOINT CHECKPOINT: weights and state of the optimizer to the bit
same_tensors() {
  local name
  "$T3D_BIN" inspect --verify "$1" > names.txt && "$T3D_BIN" inspect --verify "$2" > verified.txt ||
    fail "$1 or $2 is damaged"
  awk '/boxes$/ && $1 !~ /^run\// { print $1 }' names.txt > tensors.txt
  [[ -s tensors.txt ]] || fail "$1 has no tensors"
  while read -r name; do
    h5diff "$1/master.h5" "$2/master.h5" "/$name" || fail "$name of $1 and $2 differs"
  done < tensors.txt
}
