# slow: minutes in all
# A job of eight ranks is preempted again and again, at any moment and with 15 s of grace: no step is lost
# or done twice, and the other job gets the nodes at once.
#
# T3D_EVENTS (3) preemptions, drawn by T3D_SEED (1). A table of them all is in events.txt.
source "$T3D_SOURCE/tests/support/slurm.sh"
events=${T3D_EVENTS:-3}
RANDOM=${T3D_SEED:-1}
between=250 # steps, at most, from one to the next
at=0        # of the last start
((steps = between * (events + 1)))
make_text 20000
make_input
sed -i "s/^steps = .*/steps = $steps/" input.toml

# With its defaults Slurm would wait 121 s before it starts a job again.
start_cluster 8 --low GraceTime=15 --conf AuthInfo=cred_expire=5
SLURM_PMIX_FENCE=tree srun -N 8 "$T3D_BIN" input.toml -d whole > whole.log 2>&1 ||
  fail "the undisturbed run: $(tail -n 5 whole.log)"

run=runs/t
low=$(submitted -N 8 "$T3D_SOURCE/jobs/preemptible.sbatch" input.toml)
log=transformer3d-$low.log
lives() { (($(grep -c "^== .* life .*, on" "$log") >= $1)); }
stops() { (($(grep -c "asked to stop by a signal" "$log") >= $1)); } # at a step, or before the first one
resumes() { (($(grep -c "^resumed from" "$log") >= $1)); }
difference() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a - b }'; }

echo "event  step  lost  stop_s  free_s  wait_s  back_s" > events.txt
for ((event = 1; event <= events; ++event)); do
  in_time 120 "step of event $event" has_done $run $((at + 10 + RANDOM % 60))
  asked=$(date +%s.%N)
  high=$(submitted -p high -N 8 --exclusive -o "high-$event.log" --wrap 'date +%s.%N; sleep 1')
  in_time 30 "the nodes for the other job" test -s "high-$event.log"
  began=$(head -n 1 "high-$event.log")
  stops "$event" || fail "the run should have ended with a checkpoint"
  step=$(tail -n 1 $run/log.jsonl | sed 's/.*"step":\([0-9]*\),.*/\1/') # the last one that was done
  written=$(stat -c %.9Y $run/ckpt/step-*"$(printf %06d "$step")"/MANIFEST.json)
  in_time 60 "the job again" resumes "$event"
  back=$(date +%s.%N)
  at=$(grep "^resumed from" "$log" | tail -n 1 | sed 's/.* at step //')
  # asked -> checkpoint written -> the other job runs; and until the run has its checkpoint again
  echo "$event $step $((step - at)) $(difference "$written" "$asked") $(difference "$began" "$written")" \
    "$(difference "$began" "$asked") $(difference "$back" "$began")" >> events.txt
  ((step == at)) || fail "stopped after step $step, but went on from step $at"
done
wait_for_state "$low" COMPLETED 120
lives $((events + 1)) || fail "$events preemptions should make $((events + 1)) lives"
same_losses whole $run 0
same_tensors "$(ls -d whole/ckpt/step-*"$steps")" "$(ls -d $run/ckpt/step-*"$steps")"
column -t events.txt
awk 'NR > 1 && $5 > 3 { exit 1 }' events.txt || fail "the other job should run 3 s after the checkpoint"
