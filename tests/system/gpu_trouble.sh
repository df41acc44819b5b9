# What goes wrong with GPUs, and what the program says: none built, none there, too little memory, a
# transport that cannot be.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
run 2 input.toml -d none --set "mesh.cuboid=[2,1,1]" --set mesh.device=cuda
if grep -q "built without CUDA" out.log; then
  expect_status 69
  expect_text "ranks 0, 1 cannot use a GPU"
fi
T3D_BIN=$T3D_EMULATED
T3D_EMULATED_GPUS=0 run 2 input.toml -d none --set "mesh.cuboid=[2,1,1]" --set mesh.device=cuda
expect_status 69
expect_text "ranks 0, 1 cannot use a GPU"
T3D_EMULATED_GPUS=0 run 1 input.toml -d auto
expect_status 0
run 2 input.toml -d auto2 --set "mesh.cuboid=[2,1,1]"
expect_status 0
expect_text "computing on CPUs: 1 GPU for 2 ranks"

# Refused before the first step, with the arithmetic.
T3D_EMULATED_MEMORY_MIB=1 run 1 input.toml -d small --set mesh.device=cuda
expect_status 69
expect_text "too little memory on rank"
expect_text "optimizer"

run 2 input.toml -d nccl --set "mesh.cuboid=[2,1,1]" --set mesh.device=cuda --set mesh.transport=nccl
expect_status 69
expect_text "needs a GPU of its own for every rank"

# Wishes that contradict each other are faults of the input.
run 1 input.toml --set mesh.device=cpu --set precision.compute=tf32
expect_status 78
expect_text "needs a GPU"
run 1 input.toml --set mesh.device=cuda --set precision.compute=fp64
expect_status 78
run 1 input.toml --set precision.matmul=fp8
expect_status 78
expect_text "16-bit activations"
