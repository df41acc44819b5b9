#!/usr/bin/env bash
# Trains from the terminal: waits for nodes, and uses them until the end of the run or of their time. To stop with a
# checkpoint: touch RUN/stop_now. Ctrl-C twice ends it at once. The same command continues from the last checkpoint.
#
#   jobs/interactive.sh [INPUT.toml [OPTIONS of transformer3d ...]]
#
# Edit the next three lines.
partition=low
nodes=2
time=01:00:00
export SLURM_PMIX_FENCE=tree           # without it a rank sometimes dies in MPI_Init
export OMPI_MCA_mpi_yield_when_idle=1  # ranks that wait give their cores to the others
exec srun --partition=$partition --nodes=$nodes --time=$time --ntasks-per-node=1 --mpi=pmix --kill-on-bad-exit=1 \
  --wait=0 "${T3D_BIN:-build/cpu/transformer3d}" "${1:-inputs/tiny.toml}" "${@:2}"
