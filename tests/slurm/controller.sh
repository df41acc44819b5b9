# slow: minutes
# Slurm's controller does not answer for half a minute just when a job wants to be put back into the queue: after
# a stop, and after a lost rank. It comes back by itself all the same.
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
sed -i 's/^steps = .*/steps = 200/; s/^every_minutes = .*/every_steps = 20/' input.toml
start_cluster 2 --conf AuthInfo=cred_expire=5 --conf KillWait=5
controller=$(pgrep -P "$(cut -d ' ' -f 1 cluster/pids/head.inner)" -x slurmctld)
[[ -n $controller ]] || fail "no controller"
input=$PWD/input.toml # the whole path: no other job's processes have it in their command
rank_processes() { pgrep -f "^$T3D_BIN $input"; }
no_ranks() { [[ -z "$(rank_processes)" ]]; }
exit_says() { grep -qs "\"$1\": $2" run/exit.json; }
begun() { (($(grep -cs "start at step" run/run.log) >= $1)); }
cat > job.sbatch <<SBATCH
#!/bin/sh
#SBATCH --nodes=2 --exclusive --requeue --open-mode=append --output=job-%j.log
SLURM_PMIX_FENCE=tree srun --mpi=pmix --kill-on-bad-exit=1 --wait=0 "$T3D_BIN" "$input" -d run --set run.steps=\$STEPS
SBATCH

away() { # WHAT COMMAND...: while the controller is
  kill -STOP "$controller"
  "${@:2}"
  in_time 60 "$1: exit.json" test -e run/exit.json
  sleep 25
  kill -CONT "$controller"
}
stop_ranks() { rank_processes | xargs kill -USR2; }
kill_rank() { kill -KILL "$(rank_processes | tail -n 1)"; }

export STEPS=1000000
low=$(submitted job.sbatch)
in_time 60 "step 30" has_done run 30
away "a stop" stop_ranks
exit_says code 75 && exit_says requeues true || fail "exit.json: $(cat run/exit.json)"
in_time 90 "the second life after a stop" begun 2
grep -q "Slurm does not answer" job-"$low".log || fail "nothing is said about Slurm"
scancel "$low"
in_time 60 "the end of all ranks" no_ranks

# The program's last rank may be killed with its step: then the script does it.
rm -rf run
low=$(submitted -N 2 "$T3D_SOURCE/jobs/preemptible.sbatch" "$input" -d run --set run.steps=$STEPS)
in_time 60 "step 30" has_done run 30
away "a lost rank" kill_rank
exit_says code 76 || fail "exit.json: $(cat run/exit.json)"
in_time 120 "the second life after a lost rank" begun 2
scancel "$low"
in_time 60 "the end of all ranks" no_ranks
