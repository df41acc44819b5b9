# Sourced by campaigns: a job of eight ranks (nodes) is disturbed T3D_EVENTS (3) times, drawn by T3D_SEED (1), and in the
# end its losses and tensors are those of a run that nobody disturbed. events.txt has a line for each event.
# A campaign that was ended goes on in its folder behind the last of them.
source "$T3D_SOURCE/tests/support/slurm.sh"
events=${T3D_EVENTS:-3}
seed=${T3D_SEED:-1}
run=runs/t
nodes=8 # of the job, a rank on each
least=8 # of them: the job begins with fewer where there are no more
spare=0 # further ones of the cluster
input=$PWD/input.toml # the whole path: no other job's processes have it in their command
at=0                  # the step where the run went on the last time

# begin_campaign COLUMNS EVERY_STEPS [options of the cluster]
begin_campaign() {
  local columns=$1 every=$2
  shift 2
  cluster stop
  rm -rf cluster # with what its Slurm remembers
  make_text 20000
  make_input
  sed -i "s/^steps = .*/steps = 100000/; s/^every_minutes = .*/every_minutes = 0\nevery_steps = $every/" input.toml
  # With its defaults Slurm would wait 121 s before it starts a job again.
  start_cluster $((nodes + spare)) --conf AuthInfo=cred_expire=5 "$@"
  [[ -s events.txt ]] || echo "$columns" > events.txt
  echo "seed $seed, events $(events_done) of $events done"
  local began
  began=$(now)
  submit_run
  in_time 60 "the first step" has_gone_on "$began"
  at=$(went_on_at)
}
submit_run() { low=$(submitted -N $least-$nodes "$T3D_SOURCE/jobs/preemptible.sbatch" "$input"); }

events_done() { tail -n +2 events.txt | wc -l; }
# draw_event NUMBER: what follows from RANDOM is the same in a campaign that goes on
draw_event() { RANDOM=$(((seed * 7919 + $1 * 10007) % 32768)); }
a_while() { # SECONDS at most
  local part=$RANDOM # not in a subshell: there it is another one
  sleep "$(awk -v r=$part -v most="$1" 'BEGIN { print r / 32768 * most }')"
}

now() { date +%s.%N; }
difference() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a - b }'; }
logged_step() { tail -n 1 $run/log.jsonl | sed 's/.*"step":\([0-9]*\),.*/\1/'; } # the last one that was done
life_value() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" $run/life.json 2> /dev/null; }
# A life that began after this time has done a step.
has_gone_on() { # TIME
  local started
  started=$(life_value started)
  [[ -n $started && "$(life_value first_step_seconds)" != null ]] && awk -v a="$started" -v b="$1" 'BEGIN { exit !(a > b) }'
}
went_on_at() { life_value from_step; }

# preempt NAME: a job of higher priority, which writes when it runs into NAME.log
preempt() { submitted -p high -N $((nodes + spare)) --exclusive -o "$1.log" --wrap 'date +%s.%N; sleep 1' > /dev/null; }

# undisturbed: the run stops; nobody disturbs another one, whole, as far as that step
undisturbed() {
  touch $run/stop_now
  in_time 120 "the end of the run" no_jobs
  step=$(logged_step)
  rm -rf whole
  SLURM_PMIX_FENCE=tree srun -N $nodes "$T3D_BIN" input.toml -d whole --set checkpoint.every_steps="$step" > whole.log 2>&1 &
  in_time $((60 + step)) "the undisturbed run" has_done whole "$step"
  touch whole/stop_now
  wait $!
  head -n "$step" whole/log.jsonl > first.jsonl
  mv first.jsonl whole/log.jsonl
}
end_campaign() {
  undisturbed
  same_losses whole $run 0
  same_tensors "$(ls -d whole/ckpt/step-*"$(printf %06d "$step")")" "$(ls -d $run/ckpt/step-*"$(printf %06d "$step")")"
  column -t events.txt
  echo "seed $seed: $(events_done) events, all resumed; $step losses and the tensors are those of the undisturbed run"
}
no_jobs() { [[ -z "$(squeue -h)" ]]; }
# figures COLUMN WHAT: of events.txt, where it has a number
figures() {
  awk -v n="$1" 'NR > 1 && $n ~ /^[0-9.]+$/ { print $n }' events.txt | sort -g |
    awk -v what="$2" '{ v[NR] = $1 } END { if (NR) printf "%s: median %s, max %s (of %d)\n", what, v[int((NR + 1) / 2)], v[NR], NR }'
}
