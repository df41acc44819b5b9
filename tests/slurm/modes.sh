# slow: minutes
# Job scripts as they are on clusters with other rules: what is preempted is cancelled (with and without a grace),
# or suspended; no job is started a second time unless it asks for it; one bad status ends a step.
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
sed -i 's/^steps = .*/steps = 1000000/; s/^every_minutes = .*/every_steps = 50/' input.toml
scripts=$T3D_SOURCE/jobs
names=(preemptible one_node many_nodes heterogeneous chain written)
options=(--set debug.threads=1 --set log.every_steps=1000)

submit() { # NAME SCRIPT [INPUT OPTIONS...]
  local before=()
  case "$1" in
    preemptible | chain) before=(-N 1) ;;
    many_nodes) before=(-N 2 --ntasks-per-node=1) ;;
  esac
  submitted "${before[@]}" -o "$1-%j.log" "${@:2}" > /dev/null
}
lives() { grep -cs "start at step" "runs/$1/run.log"; }
has_lives() { (($(lives "$1") >= $2)); }
steps_done() { wc -l < "runs/$1/log.jsonl"; }
has_steps() { (($(steps_done "$1") >= $2)); }
no_jobs() { [[ -z "$(squeue -h)" ]]; }

# rules TEXT OPTIONS OF THE CLUSTER...: all scripts run, and then a job of higher priority takes all nodes
rules() {
  echo "$1"
  cluster stop
  rm -rf cluster runs ./*.log
  start_cluster 6 --cpus 4 --conf AuthInfo=cred_expire=5 "${@:2}"
  local name
  for name in "${names[@]:0:5}"; do submit "$name" "$scripts/$name.sbatch" input.toml -d "runs/$name" "${options[@]}"; done
  "$T3D_BIN" input.toml -d runs/written "${options[@]}" --write-sbatch 2 > written.sbatch || fail "--write-sbatch"
  submit written written.sbatch
  for name in "${names[@]}"; do in_time 120 "a step of $name" has_done "runs/$name" 1; done
  submitted -p high -N 6 --exclusive -o high.log --wrap 'echo; sleep 3' > /dev/null
  in_time 60 "the other job" test -s high.log
}
come_back() {
  local name
  for name in "${names[@]}"; do
    in_time 150 "the second life of $name" has_lives "$name" 2
    touch "runs/$name/stop_now"
  done
  in_time 120 "the end of all jobs" no_jobs
}

rules "cancelled after a grace" --conf PreemptMode=CANCEL --low GraceTime=15
come_back
rules "cancelled at once" --conf PreemptMode=CANCEL --low GraceTime=0
come_back
rules "nothing is started again unless it asks for it" --conf JobRequeue=0 --conf KillOnBadExit=1 --low GraceTime=15
come_back

echo "a bare srun where one bad status ends a step"
srun -N 2 "$T3D_BIN" input.toml -d runs/bare "${options[@]}" > bare.log 2>&1 &
srun=$!
in_time 60 "step 10 of a bare srun" has_done runs/bare 10
pgrep -f "^$T3D_BIN input.toml -d runs/bare" | xargs kill -USR1
wait $srun
grep -q '"code": 75' runs/bare/exit.json || fail "a bare srun did not end in order"
grep -q "run the same command again" bare.log || fail "a bare srun does not say what to do"

rules "suspended" --conf PreemptMode=SUSPEND,GANG
declare -A seen
for name in "${names[@]}"; do seen[$name]=$(steps_done "$name"); done
for name in "${names[@]}"; do
  in_time 120 "a step of $name" has_steps "$name" $((seen[$name] + 5))
  has_lives "$name" 2 && fail "$name should have one life"
  touch "runs/$name/stop_now"
done
in_time 120 "the end of all jobs" no_jobs
