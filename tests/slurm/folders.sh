# Folders and files that are each node's own are noticed at the start, and the node is named.
# rotates
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
start_cluster 3
export SLURM_PMIX_FENCE=tree OMPI_MCA_mpi_yield_when_idle=1
on_nodes() { timeout 60 srun -N 3 --kill-on-bad-exit=1 "$@" > out.log 2>&1; status=$?; }

on_nodes "$T3D_BIN" input.toml -d /tmp/mine
expect_status 78
expect_text "node n[23] does not have the folder /tmp/mine\|what node n[23] writes into /tmp/mine/ckpt is not seen on node n1"
on_nodes sh -c 'mkdir -p /tmp/mine/ckpt'
on_nodes "$T3D_BIN" input.toml -d /tmp/mine
expect_status 78
expect_text "what node n[23] writes into /tmp/mine/ckpt is not seen on node n1"
on_nodes sh -c '! ls -a /tmp/mine/ckpt | grep seen-by'
expect_status 0

# Checkpoints that all nodes share do not help a run folder that is each node's own.
on_nodes "$T3D_BIN" input.toml -d /tmp/own --set checkpoint.dir="$PWD/ckpt"
expect_status 78
expect_text "node n[23] does not have the folder /tmp/own: all nodes must share it"

srun -N 1 -w n1 cp text.txt /tmp/there.txt
on_nodes "$T3D_BIN" input.toml -d run --set 'data.train=["/tmp/there.txt"]'
expect_status 66
expect_text "/tmp/there.txt.*node n[23]"

on_nodes "$T3D_BIN" input.toml -d run --set run.steps=2
expect_status 0
[[ -z "$(ls -a run/ckpt | grep seen-by)" ]] || fail "files of the check are left"
