# transformer3d simulate, from a plan and a trace to text, JSON, files and exit codes.
. "$T3D_SOURCE/tests/support/job.sh"
cat > plan.json <<'JSON'
{"format": "transformer3d job plan", "version": 1, "name": "t", "samples": 50000, "currency": "EUR",
 "classes": [{"name": "a", "price_per_hour": 1, "return_seconds": 600, "hazard": {"per_hour": 0.1}}],
 "sizes": [{"nodes": {"a": 2}, "step_seconds": 2, "samples_per_step": 4},
           {"name": "four", "nodes": {"a": 4}, "step_seconds": 1, "samples_per_step": 4}],
 "costs": {"checkpoint_stall_seconds": 1, "checkpoint_write_seconds": 5, "restart_seconds": 20, "reshape_seconds": 5},
 "policy": {"recovery": "in_place"}}
JSON
cat > jobs.csv <<'CSV'
JobID|NodeList|Start|End|State
1|n[1-4]|2026-01-01T00:00:00|2026-01-01T02:00:00|PREEMPTED
2|n[1-3]|2026-01-01T02:30:00|2026-01-01T06:00:00|COMPLETED
CSV
run 1 simulate plan.json --deadline 5h --runs 100 -o out
expect_status 0
expect_text "deadline 5:00:00: met with a probability of"
expect_text "recovery=in_place,copies=2"
cp screen.log first.txt
for file in timeline.svg runs.csv result.json; do [[ -s out/$file ]] || fail "there is no $file"; done
grep -q "hours since the start" out/timeline.svg || fail "the plot has no axis"
grep -q "<title>four</title>" out/timeline.svg || fail "the plot has no sizes"
(($(wc -l < out/runs.csv) == 101)) || fail "runs.csv has not a line for each run"
# Once more into the same folder; files of somebody else, and what is read, stay.
run 1 simulate plan.json --deadline 5h --runs 100 -o out
expect_status 0
mkdir mine && cp jobs.csv mine/runs.csv && cp plan.json mine/result.json
run 1 simulate plan.json --trace mine/runs.csv --runs 5 -o mine
expect_status 64
expect_text "mine/runs.csv would be written over"
run 1 simulate plan.json --runs 5 -o mine
expect_status 64
expect_text "mine has a file runs.csv that no simulate wrote"
cmp jobs.csv mine/runs.csv && cmp plan.json mine/result.json || fail "a file of a person was written over"
run 1 simulate plan.json --deadline 5h --runs 100
cmp -s screen.log first.txt || fail "the same seed gives something else"
run 1 simulate plan.json --deadline 5h --runs 100 --seed 2
cmp -s screen.log first.txt && fail "another seed gives the same"
run 1 simulate plan.json --trace jobs.csv --runs 5 --json --policy copies=2,spares=1
expect_status 0
expect_text '"name":"copies=2,spares=1"'
expect_text '"undisturbed_seconds":12525.0'
run 1 simulate plan.json --history jobs.csv --deadline 1h
expect_status 0
expect_text "a: 0.0588 losses per node and hour when new, 0.1 when old"  # 7 node-hours without a loss
expect_text "impossible, as it takes 3:28:45 without any loss"

# Each class learns from its own nodes; what is not known of one is said.
sed 's/ "classes": \[/ "classes": [{"name": "b", "price_per_hour": 1, "node_list": "x[1-2]"}, /; s/"name": "a",/"name": "a", "node_list": "n[1-4]",/' \
  plan.json > two.json
run 1 simulate two.json --history jobs.csv --runs 20
expect_status 0
expect_text "a: 0.0588 losses per node and hour when new, 0.1 when old"
expect_text "b are never lost"
expect_text "b: jobs.csv has none of its nodes x\[1-2\]: hazard as planned"
sed -i 's/, "node_list": "x\[1-2\]"//' two.json
run 1 simulate two.json --history jobs.csv --runs 20
expect_text "b: the job plan does not say which nodes it has"
run 1 simulate two.json --trace jobs.csv --runs 5
expect_text "nodes of b; those of a stay"
sed 's/n\[1-4\]/n[1-/' two.json > broken.json
run 1 simulate broken.json
expect_status 78
expect_text "classes\[1\].node_list"

run 1 simulate
expect_status 64
run 1 simulate plan.json --deadline soon
expect_status 64
run 1 simulate plan.json --policy copies=0
expect_status 64
run 1 simulate nothing.json
expect_status 66
run 1 simulate plan.json --trace nothing.csv
expect_status 66
sed 's/"samples": 50000/"samples": -5/; s/"price_per_hour": 1,/"price_per_hour": "much",/' plan.json > bad.json
run 1 simulate bad.json
expect_status 78
expect_text "bad.json: 2 faults"
expect_text "  samples: -5 is not from 1 to"
sed '3s/T02:30/ 02:30/' jobs.csv > bad.csv
run 1 simulate plan.json --trace bad.csv
expect_status 78
expect_text "bad.csv:3: Start is"
# A job that would take a year to simulate is refused at once.
sed 's/"samples": 50000/"samples": 1e9/; s/"in_place"/"in_place", "interval_seconds": 1/' plan.json > long.json
run 1 simulate long.json --runs 1000000
expect_status 78
expect_text "fewer runs, or a longer interval"
sed 's/"samples": 50000/"samples": 1e12/' plan.json > years.json
run 1 simulate years.json --runs 1
expect_status 78
expect_text "years.json: samples: 1,000,000,000,000 take 7,92[0-9] years at the largest size"
sed 's/"samples": 50000/"samples": 1e15/' plan.json > years.json
run 1 simulate years.json --runs 1
expect_status 78
expect_text "samples: 1e+15 is not from 1 to 1e+12"
# Short times have their seconds.
sed 's/"samples": 50000/"samples": 50/' plan.json > short.json
run 1 simulate short.json --runs 20 --deadline 30.5s -o new/folder
expect_status 0
expect_text "^without losses  37.5 s at the largest size"
expect_text "^deadline 30.5 s: met with a probability of"
[[ -s new/folder/result.json ]] || fail "no folder was made"
run 1 simulate short.json -o short.json/out
expect_status 74
expect_text "short.json is no folder"
