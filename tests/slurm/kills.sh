# slow: a minute
# A job of eight ranks is killed again and again without a chance to save: a rank, all of them, srun, the batch
# shell; and preempted with no grace, or with less than its step takes (a rank that stands still). At any moment:
# while it starts, steps, saves, ends. It goes on from the newest checkpoint, and no checkpoint that can be seen is
# a part of one. (tests/slurm/campaign.sh: sixty times.)
source "$T3D_SOURCE/tests/support/campaign.sh"
kinds=(rank all srun shell grace0 short)
moments=(step saving end start)
begin_campaign "event kind moment hit step newest lost by wait_s back_s" 20 --low GraceTime=0 --conf KillWait=2

rank_processes() { pgrep -f "^$T3D_BIN $input"; } # on all nodes: they are of this machine
one_of() { (($#)) && echo "${@:1 + pick % $#:1}"; }
has_ranks() { [[ -n "$(rank_processes)" ]]; }
no_ranks() { [[ -z "$(rank_processes)" ]]; }
is_saving() { compgen -G "$run/ckpt/*.partial-*" > /dev/null; }
is_queued() { [[ -n "$(squeue -h -j "$low" -t PENDING,RUNNING,COMPLETING,SUSPENDED 2> /dev/null)" ]]; }

# Until the moment has come; some of them have to be brought about.
wait_for_moment() {
  local deadline=$((SECONDS + 20))
  in_time 120 "step of event $event" has_done $run $((at + 5 + RANDOM % 40))
  case "$1" in
    step) a_while 1 ;;
    saving) until is_saving || ((SECONDS > deadline)); do sleep 0.003; done ;;
    end) scancel --signal=USR2 "$low"; a_while 0.6 ;;
    start)
      scancel --signal=USR2 "$low"
      in_time 30 "the end before event $event" no_ranks
      in_time 60 "the start before event $event" has_ranks
      a_while 2
      ;;
  esac
}
# kill_it PROCESSES: how many there were
kill_it() {
  # shellcheck disable=SC2086  # a list
  [[ -z "$1" ]] || kill -KILL $1 2> /dev/null || true
  hit=$(wc -w <<< "$1")
}
strike() { # KIND
  local ranks pick=$RANDOM
  ranks=$(rank_processes | tr '\n' ' ')
  case "$1" in
    rank) kill_it "$(one_of $ranks)" ;;
    all) kill_it "$ranks" ;;
    srun) kill_it "$(pgrep -f "srun .* $T3D_BIN $input" | tr '\n' ' ')" ;;
    shell) kill_it "$(pgrep -f "slurm_script $input" | tr '\n' ' ')" ;;
    grace0 | short)
      scontrol update PartitionName=low GraceTime=$([[ $1 == short ]] && echo 1 || echo 0)
      ranks=$(one_of $ranks)
      hit=$(wc -w <<< "$ranks")
      [[ $1 != short || -z $ranks ]] || kill -STOP "$ranks" 2> /dev/null || true
      preempt high
      in_time 60 "the nodes for the other job" test -s high.log
      [[ $1 != short || -z $ranks ]] || kill -CONT "$ranks" 2> /dev/null || true
      waited=$(difference "$(head -n 1 high.log)" "$asked")
      ;;
  esac
}
newest() { # step; 0 without a checkpoint
  { echo step-0; ls -d $run/ckpt/step-* 2> /dev/null | grep -v partial; } | tail -n 1 | sed 's/.*step-0*\([0-9]\+\).*/\1/'
}
# What the next life removes in the meantime is no fault.
verify_all() {
  local folder
  for folder in $(ls -d $run/ckpt/step-* | grep -v partial); do
    "$T3D_BIN" inspect --verify "$folder" > /dev/null 2> torn.txt || [[ ! -e $folder ]] ||
      fail "event $event ($kind, $moment) left $folder: $(cat torn.txt)"
  done
}
# Slurm starts nothing again whose script was killed while the ranks start: then it is submitted again.
go_on() { # TIME
  local deadline=$((SECONDS + 120 * ${T3D_PATIENCE:-1})) gone=0
  by=itself
  until has_gone_on "$1"; do
    ((SECONDS < deadline)) || { squeue >&2; fail "event $event ($kind, $moment): the run does not go on"; }
    if is_queued || has_ranks; then gone=0; else ((++gone)); fi
    if ((gone == 20)); then
      by=user
      submit_run
    fi
    sleep 0.1
  done
}

for ((event = $(events_done) + 1; event <= events; ++event)); do
  draw_event $event
  # All pairs come before one comes again.
  kind=${kinds[(event - 1 + seed) % 6]} moment=${moments[((event - 1) / 6 + event - 1 + seed) % 4]}
  wait_for_moment "$moment"
  rm -f high.log
  asked=$(now) waited=-
  strike "$kind"
  in_time 40 "the end of all ranks, event $event ($kind, $moment)" no_ranks
  step=$(logged_step) saved=$(newest)
  verify_all
  go_on "$asked"
  back=$(now)
  at=$(went_on_at)
  echo "$event $kind $moment $hit $step $saved $((step - at)) $by $waited $(difference "$back" "$asked")" >> events.txt
  ((at >= saved)) || fail "event $event: went on at $at, though there was a checkpoint of step $saved (done: $step)"
done
end_campaign
awk 'NR > 1 { ++n[$8] } END { for (by in n) print "resumed by " by ": " n[by] }' events.txt
figures 7 "lost steps"
figures 9 "seconds from the other job's submission to its start"
figures 10 "seconds until the run goes on"
