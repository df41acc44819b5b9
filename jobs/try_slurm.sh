#!/usr/bin/env bash
# Shows on one machine what happens to a training under Slurm: a real Slurm of eight unequal nodes (namespaces;
# control groups make two of them half and two a third as fast as the others) runs jobs/preemptible.sbatch. A job
# of higher priority takes the nodes, and later one node dies. At the end the losses are compared with those of
# a run that nobody disturbed.
#
#   jobs/try_slurm.sh        as root; about three minutes on 2 cores
#
# Needs build/cpu/transformer3d (jobs/quickstart.sh builds it) and the packages of the set slurm, which it
# installs. Everything goes to runs/try-slurm; the cluster ends with this script, also at Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  "") ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0"; [[ "$1" == -h || "$1" == --help ]] || exit 64; exit 0 ;;
esac
source jobs/packages.sh
tool=$PWD/tests/slurm/cluster.sh
folder=$PWD/runs/try-slurm
cluster=$folder/cluster
export T3D_BIN=$PWD/build/cpu/transformer3d
[[ -x $T3D_BIN ]] || { echo "try_slurm: build/cpu/transformer3d is not there; jobs/quickstart.sh builds it" >&2; exit 66; }
packages_install slurm
bash "$tool" can
bash "$tool" stop "$cluster"
rm -rf "$folder"
mkdir -p "$folder"
sources=$PWD/src
cd "$folder"
# srun outside the job has no controller any more when the cluster has ended.
trap '{ kill $(jobs -p) 2> /dev/null || true; }; bash "$tool" stop "$cluster"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }

cat > preempted.toml <<TOML
version = 1
[run]
steps = 60
[model]
layers = 4
hidden = 192
heads = 4
context = 128
vocab = 256
[mesh]
cuboid = [7, 1, 1]         # of the eight nodes one is a spare
[data]
train = "$sources/*/*.cpp"
format = "bytes"
[batch]
sequences = 32
[optimizer]
lr = 1e-3
[schedule]
warmup_steps = 10
[checkpoint]
every_steps = 10
TOML

say "a cluster of eight nodes; cores of each: 0.3 0.3 0.15 0.1 0.3 0.3 0.15 0.1"
quotas=()
n=0
for cores in 0.3 0.3 0.15 0.1 0.3 0.3 0.15 0.1; do quotas+=(--cpu-quota "$((++n))=$cores"); done
# With its defaults Slurm would wait 121 s before it starts a job again, and 300 s before it calls a node dead.
bash "$tool" start "$cluster" 8 --with $$ "${quotas[@]}" --low GraceTime=15 \
  --conf AuthInfo=cred_expire=5 --conf SlurmdTimeout=10 --conf MessageTimeout=3 --conf KillWait=5
eval "$(bash "$tool" env "$cluster")"
sinfo

# News since the last look: states of jobs, the job's own words, its newest step.
shown="" lines=0 step=""
look() {
  local jobs last
  jobs=$(squeue -h -o '%4i %14j %10T %12N %r' | sort)
  if [[ "$jobs" != "$shown" ]]; then
    shown=$jobs
    echo "${jobs:-no job}" | while read -r line; do say "squeue:  $line"; done
  fi
  [[ -e $log ]] || return 0
  grep -aE '^==|asked to stop|is lost|does not answer|^resumed|DUE TO|^all steps' "$log" > words.txt || true
  tail -n "+$((lines + 1))" words.txt | cut -c 1-150 | while read -r line; do say "log:     $line"; done
  lines=$(wc -l < words.txt)
  last=$(grep -a '^step ' "$log" | tail -n 1 | cut -c 1-60) || return 0
  if [[ "$last" != "$step" ]]; then
    step=$last
    say "         $last"
  fi
}
look_until() { # SECONDS COMMAND...
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || { say "this took too long; see $log and $cluster/log"; exit 1; }
    look
    sleep 2
  done
  look
}
state_is() { [[ "$(scontrol -o show job "$1")" == *" JobState=$2 "* ]]; }
has_done() { grep -qs "\"step\":$1," runs/preempted/log.jsonl; }
has_lines() { (($(grep -c -- "$2" "$log") >= $1)); }

say "a run that nobody disturbs: srun -N 7 transformer3d"
log=undisturbed.log
SLURM_PMIX_FENCE=tree srun -J undisturbed -N 7 --exclusive "$T3D_BIN" preempted.toml -d undisturbed > "$log" 2>&1 &
look_until 120 has_lines 1 '^all steps done'
wait $!

say "sbatch -N 7 jobs/preemptible.sbatch preempted.toml"
lines=0
job=$(sbatch --parsable -N 7 "$OLDPWD/jobs/preemptible.sbatch" preempted.toml)
log=transformer3d-$job.log
look_until 60 has_done 15

say "a job of higher priority wants all nodes for 3 s"
other=$(sbatch --parsable -J urgent -p high -N 8 --exclusive -o urgent.log --wrap 'sleep 3')
look_until 60 state_is "$other" COMPLETED
look_until 60 has_lines 1 '^resumed'
look_until 60 has_done 35

say "node n5 dies"
bash "$tool" kill-node "$cluster" 5
look_until 90 has_lines 2 '^resumed'
sinfo
look_until 90 state_is "$job" COMPLETED

say "the end: $(scontrol -o show job "$job" | grep -oE '(JobState|Restarts)=[^ ]*' | paste -sd' ')"
loss_of() { sed -n 's/.*"step":\([0-9]*\),.*"loss":\([-0-9.e+]*\).*/\1 \2/p' "$1/log.jsonl"; }
loss_of undisturbed > undisturbed.txt
loss_of runs/preempted > preempted.txt
join undisturbed.txt preempted.txt | awk '
  BEGIN { printf "%6s %22s %22s\n", "step", "loss, undisturbed", "loss, three lives" }
  { d = $2 - $3; if (d < 0) d = -d; if (d / $2 > most) most = d / $2
    if ($1 % 10 == 0 || $1 == 1) printf "%6d %22s %22s\n", $1, $2, $3 }
  END { printf "%d steps, the largest relative difference is %.1e\n", NR, most; exit NR != 60 || most > 1e-4 }'
