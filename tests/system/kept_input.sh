# An input that was edited while its job runs, and has faults now: a job that Slurm starts again, or the next of a
# chain, goes on with the input that was accepted last and says so. Who starts a job by hand is told the faults.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
unset SLURM_RESTART_COUNT SLURM_JOB_ID SLURM_CLUSTER_NAME T3D_CHAIN
good=$(cat input.toml)
life() { # JOB RESTARTS STEP ARGS...: a life that pauses at STEP
  SLURM_JOB_ID=$1 SLURM_RESTART_COUNT=$2 run 1 input.toml --set run.pause_at="$3" "${@:4}"
}
spoil() { printf '%s\n' "$good" | sed "$1" > input.toml; }

life 7 0 5
expect_status 75
[[ -e runs/t/accepted.toml ]] || fail "no input is kept"
kept=$(cat runs/t/accepted.toml)
# TOML that is none, a key that there is not, a value that cannot be, a file that is missing.
step=6
for fault in 's/^heads = 4/heads = [4/' 's/^layers/lajers/' 's/^lr = 3e-3/lr = -1/' 's/text.txt/texd.txt/' 's/^\[model\]/[model/'; do
  spoil "$fault"
  life 7 1 $step
  expect_status 75
  expect_text "accepted.toml"
  [[ $(grep -c '' runs/t/log.jsonl) == "$step" ]] || fail "$fault: it did not go on to step $step"
  "$T3D_BIN" status --json runs/t > status.log
  grep -q '"warning: [^"]*accepted.toml' status.log && grep -q '"why":"[^"]*with the input of the life before' status.log ||
    fail "$fault: status: $(cat status.log)"
  [[ $(cat runs/t/accepted.toml) == "$kept" ]] || fail "$fault: the kept input is another one"
  ((++step))
done
# A job script learns the folders of the run in such a life, too.
SLURM_JOB_ID=7 SLURM_RESTART_COUNT=1 "$T3D_BIN" input.toml --write-sbatch | grep -q '^run=.*runs/t' || fail "--write-sbatch"

# By hand, in the first start of a job, in a restarted job that another one has submitted, with another input.
lines=$(grep -c '' runs/t/log.jsonl)
run 1 input.toml
expect_status 78
life 8 0 19
expect_status 78
life 8 1 19
expect_status 78
cp input.toml other.toml
SLURM_JOB_ID=7 SLURM_RESTART_COUNT=1 run 1 other.toml -d runs/t
expect_status 78
"$T3D_BIN" input.toml --write-sbatch > out.log 2>&1 && fail "--write-sbatch by hand"
[[ $(grep -c '' runs/t/log.jsonl) == "$lines" ]] || fail "a refused start went on"

# A chain of jobs; a run folder that the command names.
spoil 's/^name = "t"/name = "t/'
T3D_CHAIN=17 life 9 0 15 -d runs/t
expect_status 75
expect_text "accepted.toml"
# An edit without faults counts, and is kept.
spoil 's/^steps = 20/steps = 18/'
life 9 1 0
expect_status 0
grep -q '^steps = 18' runs/t/accepted.toml || fail "the new input is not kept"
