# Whole trainings with the GPU back end: the program's own CUDA sources over the emulated runtime
# (tests/support/cuda_emulation), as processes of a real MPI job, against the reference on CPUs.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
cpu=$T3D_BIN
gpu=$T3D_EMULATED
make_text 20000
make_input

# 20 steps on one GPU, as graphs and as single launches, against the reference; fp32 to 1e-4.
T3D_BIN=$cpu run 1 input.toml -d reference --set precision.backend=reference
expect_status 0
T3D_BIN=$gpu
run 1 input.toml -d one --set mesh.device=cuda
expect_status 0
expect_text "rank 0 on emulated"
same_losses reference one 1e-4
run 1 input.toml -d launches --set mesh.device=cuda --set debug.graphs=false
expect_status 0
same_losses one launches 0

# MFU beside the data sheet's peak, where the GPUs are known: each counts once, however many ranks share it.
for ranks in 1 2; do
  T3D_EMULATED_NAME="NVIDIA H200" run $ranks input.toml -d sheet --set mesh.device=cuda --set "mesh.cuboid=[$ranks,1,1]" \
    --set run.steps=4 --set precision.compute=bf16 -r never
  expect_status 0
  expect_text "GFLOP/s over all ranks (mfu 100 %), 989500.0 GFLOP/s by the data sheets"
  expect_text "% of the data sheets' peak"
  expect_text "  peak 0% *imb"
  grep -q '"mfu_of_peak":' sheet/log.jsonl || fail "no mfu_of_peak in log.jsonl"
done
T3D_EMULATED_NAME="NVIDIA H200" run 2 input.toml -d part --set mesh.device=mixed --set "mesh.cuboid=[1,2,1]" --set run.steps=1
expect_status 0
! grep -q "data sheets" out.log || fail "a data sheet of CPUs"

# bf16 on tensor cores: 0.01 absolute.
wide=(--set model.hidden=128 --set model.heads=2 --set run.steps=8 --set batch.sequences=4
  --set batch.micro=2)
T3D_BIN=$cpu run 1 input.toml -d wide "${wide[@]}" --set precision.backend=reference
expect_status 0
for compute in bf16 fp16; do
  run 1 input.toml -d "$compute" "${wide[@]}" --set precision.compute=$compute --set mesh.device=cuda
  expect_status 0
  near_losses wide "$compute" 0.01
done

# Several ranks on one GPU, uneven widths, CPU and GPU ranks in one group.
run 8 input.toml -d staged --set mesh.device=cuda --set "mesh.cuboid=[2,2,2]"
expect_status 0
expect_text "8 ranks share 1 GPU"
same_losses reference staged 1e-4
grep -q differ out.log && fail "staged: bytes differ from the formula"
run 4 input.toml -d uneven --set mesh.device=cuda --set "mesh.cuboid=[2,2,1]" \
  --set "mesh.tokens=[3,1]" --set "mesh.outputs=[1,3]"
expect_status 0
same_losses reference uneven 1e-4
run 4 input.toml -d mixed --set mesh.device=mixed --set "mesh.cuboid=[1,2,1]" --set mesh.replicas=2
expect_status 0
expect_text "1 rank on GPUs, 3 on CPUs"
same_losses reference mixed 1e-4

# A checkpoint of a GPU run is read by CPU ranks, and the other way round.
run 1 input.toml -d move --set mesh.device=cuda --set run.steps=10 --set schedule.kind=constant
expect_status 0
T3D_BIN=$cpu run 2 input.toml -d move --set "mesh.cuboid=[1,2,1]" --set schedule.kind=constant
expect_status 0
expect_text "resumed from move/ckpt/step-"
T3D_BIN=$cpu run 1 input.toml -d plain --set precision.backend=reference --set schedule.kind=constant
expect_status 0
same_losses plain move 1e-4
run 1 input.toml -d move --set mesh.device=cuda --set schedule.kind=constant --set run.steps=24
expect_status 0
expect_text "at step 20"

# The tensors' peak is what the dry run says, within 3 %.
wider=(--set mesh.device=cuda --set precision.tune=false --set model.hidden=192 --set model.heads=3
  --set model.vocab=500 --set batch.sequences=16 --set batch.micro=16 --set run.steps=2)
peak() { sed -n "s/.*$1: *\([0-9.]*\) MiB.*/\1/p" out.log; }
run 1 input.toml -d peak "${wider[@]}"
expect_status 0
used=$(peak "memory of the largest rank")
run 1 input.toml -d dry "${wider[@]}" --dry-run 1
expect_status 0
planned=$(peak "memory per rank")
awk -v a="$used" -v b="$planned" 'BEGIN { exit !(a > 0 && b > 0 && a <= 1.03 * b && a >= 0.97 * b) }' ||
  fail "the tensors take $used MiB, the dry run says $planned"
