#!/usr/bin/env bash
# Trains on nodes that are waited for and held at the terminal. Ctrl-C twice ends it; the run continues with the
# same command from its last checkpoint. For a checkpoint at once: touch RUN/stop_now.
#
#   jobs/interactive.sh [INPUT.toml [OPTIONS of transformer3d ...]]
#
# Edit the next three lines.
partition=low
nodes=2
time=01:00:00
export SLURM_PMIX_FENCE=tree           # without it ranks die in MPI_Init now and then
export OMPI_MCA_mpi_yield_when_idle=1  # where ranks share cores, one that waits must give its core away
exec srun --partition=$partition --nodes=$nodes --time=$time --ntasks-per-node=1 --mpi=pmix --kill-on-bad-exit=1 \
  --wait=0 "${T3D_BIN:-build/cpu/transformer3d}" "${1:-inputs/tiny.toml}" "${@:2}"
