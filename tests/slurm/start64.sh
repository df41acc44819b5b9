# slow: 64 nodes on one machine
# One rank on each of 64 nodes trains as one rank does.
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 200000
make_input
sed -i 's/^sequences = .*/sequences = 64/; s/^steps = .*/steps = 3/' input.toml
run 1 input.toml -d one
expect_status 0

SECONDS=0
start_cluster 64
echo "64 nodes after $SECONDS s"
export SLURM_PMIX_FENCE=tree OMPI_MCA_mpi_yield_when_idle=1
SECONDS=0
srun -N 64 --kill-on-bad-exit=1 "$T3D_BIN" input.toml -d many > out.log 2>&1 || fail "srun -N 64"
echo "trained after $SECONDS s"
expect_text "3 steps"
same_losses one many 1e-6
