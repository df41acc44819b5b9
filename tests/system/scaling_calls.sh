# scaling: what is wrong with a call is said before anything runs; Ctrl-C ends the ranks and keeps finished runs; the Slurm
# script's tasks run (by mpirun here) what is missing; a run that fails leaves its point missing.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
run 1 scaling input.toml
expect_status 64
expect_text "needs an input file and --ranks"
run 1 scaling input.toml --ranks 0
expect_status 64
run 1 scaling input.toml --ranks 2,4 --shapes 1x2x1,2x2 -o none
expect_status 64
expect_text "'2x2' is no shape"
run 1 scaling input.toml --ranks 2,4 --shapes 1x2x1,2x2x2 -o none
expect_status 64
expect_text "2x2x2 has 8 ranks, which --ranks does not name"
run 1 scaling input.toml --ranks 2,4 --shapes 1x2x1 -o none
expect_status 64
expect_text "no shape has 4 ranks"
run 1 scaling input.toml --ranks 3,4 --weak -o none
expect_status 64
expect_text "no whole number"
run 1 scaling input.toml --ranks 2 --launcher mpirun -o none
expect_status 64
expect_text "does not say where the number of ranks goes"
run 1 scaling input.toml --ranks 1,2 --set mesh.replicas=2 -o none
expect_status 78
expect_text "point ranks-1"
run 1 scaling input.toml --ranks 1,2 --set 'mesh.cuboid=[1, 2, 1]' --set 'mesh.outputs=[1, 2]' -o none
expect_status 78
expect_text "mesh.outputs is of one number of ranks"
run 2 scaling input.toml --ranks 2 -o none
expect_status 64
expect_text "without mpirun or srun"
run 1 scaling input.toml --ranks 1 -o $'none\nx'
expect_status 64
expect_text "-o: the study cannot lie in .*: the name has a control character"
run 1 scaling input.toml --ranks 1 -o input.toml/study
expect_status 74
expect_text "input.toml is no folder"
[[ ! -e none ]] || fail "a wrong call has made a folder"
# Names that words of a command, or values of keys, cannot begin with.
run 1 scaling input.toml --ranks 1 --repeat 1 --steps 6 -o '-[x] y'
expect_status 0
[[ -s "./-[x] y/scaling.csv" && -s "./-[x] y/ranks-1/operators.json" ]] || fail "a study in a folder of a strange name"
run 1 scaling input.toml --ranks 2 --launcher "no-such-launcher {ranks}" -o none
expect_status 69
expect_text "cannot start no-such-launcher"

# Two shapes of two ranks, with replicas; one that fails.
run 1 scaling input.toml --ranks 1,2 --shapes '1x1x1,1x2x1,2*1x1x1' --repeat 1 --steps 6 --no-roofline -o shapes
expect_status 0
expect_text "no roofline: of ranks-1-1x1x1: there is no shapes/ranks-1-1x1x1/operators.json"
expect_text "probe INPUT --operators FILE"
python3 "$T3D_SOURCE/tests/support/study_numbers.py" shapes || fail "shapes"
grep -q "2 \* 1 x 1 x 1" shapes/scaling.csv || fail "replicas"
if kpsewhich booktabs.sty > /dev/null 2>&1; then
  printf '\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\tiny\\input{shapes/scaling}\\end{document}' > paper.tex
  pdflatex -interaction=nonstopmode -halt-on-error paper.tex > out.log 2>&1 || fail "LaTeX does not take the table"
fi
run 1 scaling input.toml --ranks 1 --repeat 2 --steps 6 --set data.train=none.txt -o fails
expect_status 69
expect_text "ranks-1: no figures, the run ended with 66; see fails/ranks-1/repeat-1.log"
expect_text "missing"

# Stopped: no rank is left, the finished run stays, the next call goes on.
"$T3D_BIN" scaling input.toml --ranks 1,2 --repeat 1 --steps 200000 --set log.every_steps=1000000 -o stop > stop.log 2>&1 &
job=$!
for _ in $(seq 400); do [[ -s stop/ranks-1/repeat-1/log.jsonl ]] && break; sleep 0.05; done
[[ -s stop/ranks-1/repeat-1/log.jsonl ]] || fail "no run has begun"
# A second call in the folder ends, names the first, and changes nothing.
find stop -name '*.toml' -o -name '*.json' | sort | xargs cat > before.txt
run 1 scaling input.toml --ranks 1,2,3 --repeat 1 --steps 200000 --set log.every_steps=1000000 -o stop
expect_status 69
expect_text "stop/run.lock is held by process $job on .* two calls of scaling cannot work in one folder"
find stop -name '*.toml' -o -name '*.json' | sort | xargs cat | cmp - before.txt || fail "the second call has changed the study"
kill -0 $job || fail "the first call has ended"
children=$(cat /proc/$job/task/*/children)
kill -TERM $job
wait $job
status=$?
expect_status 75
for child in $children; do [[ ! -e /proc/$child ]] || fail "the launcher goes on"; done
ps -eo args | grep -v grep | grep -q "$PWD/stop\|stop/ranks-1/input.toml" && fail "ranks go on"
[[ ! -e stop/run.lock ]] || fail "the lock stays after the end"
grep -q "the same command runs what is missing" stop.log || fail "what to do"
"$T3D_BIN" scaling input.toml --ranks 1,2 --repeat 1 --steps 200000 --set log.every_steps=1000000 -o stop > stop.log 2>&1 &
job=$!
for _ in $(seq 400); do [[ -e stop/ranks-1/repeat-1.unfinished-1 && -s stop/ranks-1/repeat-1/log.jsonl ]] && break; sleep 0.05; done
# Killed, it takes its launcher along.
children=$(cat /proc/$job/task/*/children)
kill -KILL $job
wait $job 2> /dev/null
for _ in $(seq 200); do ps -eo args | grep -v grep | grep -q "stop/ranks-1/input.toml" || break; sleep 0.05; done
ps -eo args | grep -v grep | grep -q "stop/ranks-1/input.toml" && fail "ranks outlive a study that was killed"

# The tasks of the array job.
run 1 scaling input.toml --ranks 1,3 --repeat 2 --steps 6 --threads 1 --slurm --ranks-per-node 2 -o array
expect_status 0
bash -n array/study.sbatch || fail "study.sbatch"
grep -q "^#SBATCH --array=0-3%1" array/study.sbatch && grep -q "^#SBATCH --nodes=2 --ntasks-per-node=2" array/study.sbatch || fail "sizes"
mkdir elsewhere
for task in 0 1 1 2; do # from another folder
  (cd elsewhere && SLURM_ARRAY_TASK_ID=$task T3D_LAUNCHER='mpirun -n {ranks}' bash ../array/study.sbatch > ../out.log 2>&1) || fail "task $task"
done
[[ -s array/ranks-1/operators.json && -s array/ranks-3/operators.json ]] || fail "the tasks have measured no operators"
[[ -e array/ranks-1/repeat-2/exit.json && -e array/ranks-3/repeat-1/exit.json && ! -e array/ranks-3/repeat-2 ]] || fail "tasks"
[[ -z $(ls -d array/*/*.unfinished* 2> /dev/null) && ! -e array/ranks-1/repeat-1/ckpt ]] || fail "a task that was done ran again"
# Submitted again, a task measures what is missing of a finished run's operators, and runs nothing else.
rm array/ranks-1/operators.json
cp array/ranks-1/repeat-1/exit.json exit.json
(cd elsewhere && SLURM_ARRAY_TASK_ID=0 T3D_LAUNCHER='mpirun -n {ranks}' bash ../array/study.sbatch > ../out.log 2>&1) || fail "task 0 again"
[[ -s array/ranks-1/operators.json ]] || fail "the operators are still missing"
cmp exit.json array/ranks-1/repeat-1/exit.json || fail "a finished run ran again"
run 1 scaling --collect array
expect_status 0
python3 "$T3D_SOURCE/tests/support/study_numbers.py" array || fail "the numbers of the array job"
# A task leaves a run alone that somebody else is doing.
rm array/ranks-3/repeat-1/exit.json
"$T3D_BIN" array/ranks-1/input.toml -d array/ranks-3/repeat-1 --set run.steps=1000000 --set log.every_steps=1000000 > first.log 2>&1 &
job=$!
for _ in $(seq 400); do [[ -e array/ranks-3/repeat-1/run.lock ]] && break; sleep 0.05; done
SLURM_ARRAY_TASK_ID=1 SLURM_JOB_ID=7 T3D_LAUNCHER='mpirun -n {ranks}' bash array/study.sbatch > out.log 2>&1
status=$?
expect_status 69
expect_text "array/ranks-3/repeat-1 is being run by somebody else"
run 1 scaling input.toml --ranks 1,3 --repeat 1 --steps 6 --threads 1 -o array
kill -TERM $job
wait $job
expect_status 69
expect_text "repeat 1 of 1, ranks-3: left alone, process $job on"
