# The shortest job script that there is: a rank is killed, then a node dies. The other ranks end within ten
# seconds and say who is lost; the job comes back by itself and makes the model of an undisturbed run.
# rotates
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
sed -i 's/^steps = .*/steps = 300/; s/^every_minutes = .*/every_steps = 20/' input.toml
start_cluster 4 --conf AuthInfo=cred_expire=5 --conf SlurmdTimeout=10 --conf KillWait=5
export SLURM_PMIX_FENCE=tree OMPI_MCA_mpi_yield_when_idle=1
srun -N 4 "$T3D_BIN" input.toml -d whole > whole.log 2>&1 || fail "the undisturbed run: $(tail -n 5 whole.log)"

cat > job.sbatch <<SBATCH
#!/bin/sh
#SBATCH --nodes=4 --exclusive --requeue --open-mode=append --output=job-%j.log
srun --mpi=pmix --kill-on-bad-exit=1 --wait=0 "$T3D_BIN" input.toml -d run
SBATCH

rank_processes() { pgrep -f "^$T3D_BIN input.toml -d run"; } # on all nodes: they are of this machine
no_ranks() { [[ -z "$(rank_processes)" ]]; }
code_is() { grep -qs "\"code\": $1" run/exit.json; }
has_lines() { (($(grep -cs -- "$2" "$1") >= $3)); }
has_line() { grep -qs -- "$2" "$1"; }

low=$(submitted job.sbatch)
in_time 30 "step 50" has_done run 50
killed=$(rank_processes | sed -n 3p)
SECONDS=0
kill -KILL "$killed"
in_time 10 "76 in exit.json" code_is 76
in_time 10 "the end of all ranks" no_ranks
echo "a killed rank: the others ended after $SECONDS s"
[[ $(grep -c "^error: rank . on node n. is lost: its process has ended" run/run.log) == 1 ]] || fail "run.log does not name the lost rank once"
in_time 60 "the second life" has_line job-"$low".log "resumed from run/ckpt"
first=$(sed -n 's/.*resumed from .* at step \([0-9]*\).*/\1/p' job-"$low".log | tail -n 1)

in_time 30 "a step of the second life" has_done run $((first + 60))
SECONDS=0
cluster kill-node 3
in_time 10 "the second lost rank in run.log" has_line run/run.log "its node n3 does not answer"
echo "a dead node: said after $SECONDS s"
in_time 20 "the end of all ranks" no_ranks
echo "a dead node: the others ended after $SECONDS s"
cluster start-node 3
in_time 90 "the third life" has_line run/lives.jsonl '"life":2'
# Asked to stop from outside, it comes back by itself, too: this script does nothing for it.
in_time 60 "a start of the third life" has_lines job-"$low".log "^resumed from" 2
scancel --signal=USR2 "$low"
in_time 60 "the end of the third life" has_line run/lives.jsonl '"life":3.*"code":75'
wait_for_state "$low" COMPLETED 120
[[ "$(job_field "$low" Restarts)" == 3 ]] || fail "the job should have four lives"
same_losses whole run 0
same_tensors whole/ckpt/step-00000300 run/ckpt/step-00000300

# Without a script, and without --kill-on-bad-exit: the same end, and what to do.
srun -N 4 --wait=0 "$T3D_BIN" input.toml -d run --set run.steps=1000000 > bare.log 2>&1 &
srun=$!
in_time 30 "step 310" has_done run 310
SECONDS=0
kill -KILL "$(rank_processes | sed -n 2p)"
wait $srun
((SECONDS <= 12)) || fail "a bare srun ended only after $SECONDS s"
grep -q "the same command goes on from the checkpoint" bare.log || fail "a bare srun does not say what to do"
code_is 76 || fail "exit.json of a bare srun"
