# slow: 64 nodes on one machine
# One rank on each of 64 nodes trains as one rank does; stopped for a job of higher priority and started again, it
# ends with the same state to the bit.
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 200000
make_input
sed -i 's/^sequences = .*/sequences = 64/; s/^steps = .*/steps = 12/' input.toml
run 1 input.toml -d one
expect_status 0

SECONDS=0
start_cluster 64 --low GraceTime=120 --conf AuthInfo=cred_expire=5
echo "64 nodes after $SECONDS s"
export SLURM_PMIX_FENCE=tree OMPI_MCA_mpi_yield_when_idle=1
SECONDS=0
srun -N 64 --kill-on-bad-exit=1 "$T3D_BIN" input.toml -d many > out.log 2>&1 || fail "srun -N 64"
echo "trained after $SECONDS s"
expect_text "12 steps"
same_losses one many 1e-6

low=$(submitted -N 64 "$T3D_SOURCE/jobs/preemptible.sbatch" input.toml)
in_time 300 "step 3" has_done runs/t 3
high=$(submitted -p high -N 64 --exclusive -o high.log --wrap 'sleep 1')
wait_for_state "$high" COMPLETED 200
wait_for_state "$low" COMPLETED 400
[[ "$(job_field "$low" Restarts)" == 1 ]] || fail "the job should have two lives"
same_losses many runs/t 0
last_digest() { grep -o 'step-00000012 .*digest [0-9a-f]*' "$1/run.log" | sed 's/.*digest //'; }
[[ -n "$(last_digest many)" && "$(last_digest many)" == "$(last_digest runs/t)" ]] ||
  fail "digests $(last_digest many) and $(last_digest runs/t)"
echo "the same digest $(last_digest many); the other job waited $(seconds_waited "$high") s"
