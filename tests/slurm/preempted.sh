# Submitted once with jobs/preemptible.sbatch as it is: a job of higher priority takes the nodes, and in the
# end there is the model that an undisturbed run makes: no step lost, none done twice.
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
sed -i 's/^steps = .*/steps = 400/' input.toml
cp input.toml shown.toml

start_cluster 4 --low GraceTime=15 --conf AuthInfo=cred_expire=5
srun -N 4 "$T3D_BIN" input.toml -d whole > whole.log 2>&1 || fail "the undisturbed run: $(tail -n 5 whole.log)"

low=$(submitted "$T3D_SOURCE/jobs/preemptible.sbatch" shown.toml)
in_time 90 "step 50" has_done runs/t 50
high=$(submitted -p high -N 4 --exclusive -o high.log --wrap 'date +%s.%N; sleep 1')
wait_for_state "$high" COMPLETED 40
cp transformer3d-"$low".log out.log
expect_text "asked to stop by a signal"
((stopped = $(sed -n 's/.*asked to stop by a signal: \([0-9]*\) steps.*/\1/p' out.log)))
((stopped < 400)) || fail "the job should have been stopped in the middle"
(($(seconds_waited "$high") <= 3)) || fail "the other job should get the nodes at once"

wait_for_state "$low" COMPLETED 120
cp transformer3d-"$low".log out.log
expect_text "job $low, life 1, on n\[1-4\]"
expect_text "job $low, life 2, on n\[1-4\]"
expect_text "resumed from runs/t/ckpt/step-0*$stopped at step $stopped"
[[ "$(job_field "$low" Restarts)" == 1 ]] || fail "the job should have two lives"
same_losses whole runs/t 0
same_tensors whole/ckpt/step-00000400 runs/t/ckpt/step-00000400
echo "stopped after step $stopped of 400, the other job waited $(seconds_waited "$high") s"

echo "a signal to the script alone reaches the ranks; a job that its owner cancels stays so"
rm -r runs
low=$(submitted "$T3D_SOURCE/jobs/preemptible.sbatch" shown.toml)
in_time 90 "step 30" has_done runs/t 30
scancel --batch --signal=USR1 "$low"
has_line() { grep -qs -- "$2" "$1"; }
in_time 90 "the second life" has_line transformer3d-"$low".log "resumed from"

echo "a job that Slurm itself puts back comes back, and nothing else is said"
scontrol requeue "$low"
has_lives() { (($(grep -cs "start at step" runs/t/run.log) >= $1)); }
in_time 90 "the third life" has_lives 3
! grep -q "not started again" transformer3d-"$low".log || fail "it is started again"
scancel "$low"
wait_for_state "$low" CANCELLED 40
nodes_are_free() { [[ -z "$(squeue -h)" ]]; }
in_time 40 "the nodes are free" nodes_are_free
[[ "$(job_field "$low" Restarts)" == 2 ]] || fail "the job should have three lives"
grep -q '"code": 75' runs/t/exit.json || fail "the cancelled job should have written a checkpoint"

echo "an input that is wrong is not tried again"
low=$(submitted "$T3D_SOURCE/jobs/preemptible.sbatch" shown.toml --set model.heads=5)
wait_for_state "$low" FAILED 40
[[ "$(job_field "$low" ExitCode)" == 78:0 && "$(job_field "$low" Restarts)" == 0 ]] || fail "wrong input: 78, once"
