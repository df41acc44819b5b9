# slow: minutes in all
# A job of eight ranks is preempted again and again, at any moment and with 15 s of grace: no step is lost
# or done twice, and the other job gets the nodes at once. (tests/slurm/campaign.sh: sixty times.)
source "$T3D_SOURCE/tests/support/campaign.sh"
begin_campaign "event step lost stop_s free_s wait_s back_s" 0 --low GraceTime=15

for ((event = $(events_done) + 1; event <= events; ++event)); do
  draw_event $event
  in_time 120 "step of event $event" has_done $run $((at + 10 + RANDOM % 30))
  a_while 1 # log.jsonl is written once a second
  rm -f high.log
  asked=$(now)
  preempt high
  in_time 30 "the nodes for the other job" test -s high.log
  began=$(head -n 1 high.log)
  grep -q '"code": 75' $run/exit.json || fail "the run should have ended with a checkpoint"
  step=$(logged_step)
  written=$(stat -c %.9Y $run/ckpt/step-*"$(printf %06d "$step")"/MANIFEST.json)
  in_time 60 "the job again" has_gone_on "$asked"
  back=$(now)
  at=$(went_on_at)
  # asked -> checkpoint written -> the other job runs; and until the run goes on
  echo "$event $step $((step - at)) $(difference "$written" "$asked") $(difference "$began" "$written")" \
    "$(difference "$began" "$asked") $(difference "$back" "$began")" >> events.txt
  ((step == at)) || fail "stopped after step $step, but went on from step $at"
done
end_campaign
figures 3 "lost steps"
figures 5 "seconds from the checkpoint to the other job"
figures 6 "seconds from the other job's submission to its start"
figures 7 "seconds until the run goes on"
awk 'NR > 1 && $5 > 3 { exit 1 }' events.txt || fail "the other job should run 3 s after the checkpoint"
