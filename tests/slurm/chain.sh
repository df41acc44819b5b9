# slow: minutes
# One job, submitted once, has ten lives: signals, a preemption, a node that is drained, a time limit, fewer nodes
# and more nodes end them. Each step is done exactly once, and as long as the ranks have the same shape the losses
# are those of a run that nobody disturbed.
source "$T3D_SOURCE/tests/support/campaign.sh"
nodes=4 least=3 spare=1
begin_campaign "life" 0 --low GraceTime=15

# next_life WHAT COMMAND...: ends this life and waits for a step of the next
next_life() {
  in_time 120 "a step before: $1" has_done $run $(($(went_on_at) + 3))
  local asked
  asked=$(now)
  echo "$1"
  "${@:2}" || fail "$1"
  in_time 150 "the next life after: $1" has_gone_on "$asked"
}
signal() { scancel --signal="$1" "$low"; }
signal_script() { scancel --batch --signal=USR1 "$low"; }
drain() { # a node is to be repaired; its job is sent elsewhere, and there is one node less
  scontrol update NodeName="$1" State=DRAIN Reason=test && scontrol requeue "$low"
}
repaired() { scontrol update NodeName=n[1-2] State=RESUME && signal USR2; }
limit_time() { scontrol update JobId="$low" TimeLimit=1; } # minute; the script asks for USR2 two minutes before

next_life "USR1" signal USR1
next_life "USR2" signal USR2
next_life "TERM" signal TERM
next_life "a signal to the script" signal_script
next_life "preemption" preempt high
next_life "a node is drained, the spare one is there" drain n1
next_life "time limit" limit_time
scontrol update JobId="$low" TimeLimit=60
same=$(went_on_at) # steps with the same ranks
next_life "fewer nodes" drain n2
next_life "more nodes" repaired
in_time 120 "a step of the last life" has_done $run $(($(went_on_at) + 3))
undisturbed
same_losses whole $run 1e-4
for name in whole $run; do
  mkdir -p "first/$name"
  head -n "$same" $name/log.jsonl > "first/$name/log.jsonl"
done
same_losses first/whole first/$run 0
python3 - $run <<'PY' || fail "lives or steps"
import json, sys
lives = [json.loads(line) for line in open(sys.argv[1] + "/lives.jsonl")]
steps = [json.loads(line) for line in open(sys.argv[1] + "/log.jsonl")]
assert len(lives) == 10 and len({life["job"] for life in lives}) == 1, lives
assert all(life["code"] == 75 and life["lost_steps"] in (0, None) for life in lives), lives
assert [life["ranks"] for life in lives] == [4] * 8 + [3, 4], lives
assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
assert len({step["tokens"] for step in steps}) == 1
print(len(lives), "lives,", len(steps), "steps, each of them once")
PY
