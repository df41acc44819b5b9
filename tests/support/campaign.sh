# Sourced by campaigns: a job of eight ranks is disturbed T3D_EVENTS (3) times, drawn by T3D_SEED (1), and in the
# end its losses and tensors are those of a run that nobody disturbed. events.txt has a line for each event.
# A campaign that was ended goes on in its folder behind the last of them.
source "$T3D_SOURCE/tests/support/slurm.sh"
events=${T3D_EVENTS:-3}
seed=${T3D_SEED:-1}
run=runs/t
input=$PWD/input.toml # the whole path: no other job's processes have it in their command
at=0                  # the step where the run went on the last time

# begin_campaign STEPS_PER_EVENT COLUMNS EVERY_STEPS [options of the cluster]
begin_campaign() {
  local every=$3 columns=$2
  ((steps = $1 * (events + 1)))
  shift 3
  cluster stop
  make_text 20000
  make_input
  sed -i "s/^steps = .*/steps = $steps/; s/^every_minutes = .*/every_minutes = 0\nevery_steps = $every/" input.toml
  # With its defaults Slurm would wait 121 s before it starts a job again.
  start_cluster 8 --conf AuthInfo=cred_expire=5 "$@"
  if [[ ! -e whole.done ]]; then
    rm -rf whole
    SLURM_PMIX_FENCE=tree srun -N 8 "$T3D_BIN" input.toml -d whole --set checkpoint.every_steps=0 > whole.log 2>&1 ||
      fail "the undisturbed run: $(tail -n 5 whole.log)"
    touch whole.done
  fi
  [[ -s events.txt ]] || echo "$columns" > events.txt
  echo "seed $seed, events $(events_done) of $events done"
  submit_run
}
submit_run() { low=$(submitted -N 8 "$T3D_SOURCE/jobs/preemptible.sbatch" "$input"); }

events_done() { tail -n +2 events.txt | wc -l; }
# draw_event NUMBER: what follows from RANDOM is the same in a campaign that goes on
draw_event() { RANDOM=$(((seed * 7919 + $1 * 10007) % 32768)); }
a_while() { sleep "$(awk -v r=$RANDOM -v most="$1" 'BEGIN { print r / 32768 * most }')"; } # SECONDS at most

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
preempt() { submitted -p high -N 8 --exclusive -o "$1.log" --wrap 'date +%s.%N; sleep 1' > /dev/null; }

# end_campaign: the run ends by itself, as if nothing had been
end_campaign() {
  wait_for_state "$low" COMPLETED $((60 + steps / 10))
  same_losses whole $run 0
  same_tensors "$(ls -d whole/ckpt/step-*"$steps")" "$(ls -d $run/ckpt/step-*"$steps")"
  column -t events.txt
  echo "seed $seed: $(events_done) events, all resumed; losses and tensors are those of the undisturbed run"
}
# figures COLUMN WHAT: of events.txt, where it has a number
figures() {
  awk -v n="$1" 'NR > 1 && $n ~ /^[0-9.]+$/ { print $n }' events.txt | sort -g |
    awk -v what="$2" '{ v[NR] = $1 } END { if (NR) printf "%s: median %s, max %s (of %d)\n", what, v[int((NR + 1) / 2)], v[NR], NR }'
}
