# plan --elastic as a chain of jobs: one node, then two. Each step is done once, with the losses of one size; a job that is
# asked to stop comes back in its phase; the options of sbatch stay whole; scancel ends the chain.
# rotates
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
"$T3D_BIN" calibrate --preset a100-40g,ib-ndr -o cluster.toml > /dev/null || fail "calibrate"
# Two nodes of one slow processor, and a slow network between them: with the small batch one node is as fast as both.
python3 - cluster.toml <<'PY' || fail "cluster.toml"
import re, sys
text = open(sys.argv[1]).read()
before, operators = text.split("\n[[operator]]", 1)
for key, value in (("nodes", 2), ("ranks_per_node", 1), ("gpus_per_rank", 0), ("device", '"cpu"'), ("price_per_node_hour", 1)):
    before = re.sub(rf'(?m)^{key} = ("[^"]*"|\S+)', f"{key} = {value}", before, count=1)
before = before.replace("beta_seconds_per_byte = 2e-11\n", "beta_seconds_per_byte = 0.05\n")
slower = lambda line: re.sub(r"[0-9][0-9.e+-]*", lambda number: repr(1e9 * float(number[0])), line[0])
open(sys.argv[1], "w").write(before + "\n[[operator]]" + re.sub(r"(?m)^terms = .*?\]", slower, operators))
PY
"$T3D_BIN" plan input.toml --cluster cluster.toml --set run.steps=600 --elastic --noise 200,1.5 --most-batch 32 --objective time --budget 6000 -o out > plan.txt 2>&1 ||
  fail "plan: $(cat plan.txt)"
python3 - out/elastic.json <<'PY' || fail "the plan: $(cat plan.txt)"
import json, sys
phases = json.load(open(sys.argv[1]))["phases"]
nodes = [list(phase["nodes"].values())[0] for phase in phases]
assert nodes[0] == 1 and nodes[-1] == 2 and nodes == sorted(nodes), nodes
print(*nodes)
PY
phases=$(ls out/phase-*.toml | wc -l)
pause=$(sed -n 's/^pause_at = \([0-9]*\).*/\1/p' out/phase-1.toml)
end=$(sed -n 's/.*"last_step": \([0-9]*\).*/\1/p' out/elastic.json | tail -n 1)

for ((n = 1; n <= phases; ++n)); do
  run 1 "out/phase-$n.toml" -d whole --set mesh.replicas=1 --set 'mesh.cuboid=[1,1,1]' --set debug.threads=1
  expect_status $((n < phases ? 75 : 0))
done

# The signals have to arrive before the first phase is over, on fast machines, too.
sed -i 's/^slowdown = .*/slowdown = [4]/' out/phase-1.toml
start_cluster 2 --conf AuthInfo=cred_expire=5
jobs() { scontrol -o show job | sed -n 's/^JobId=\([0-9]*\) .*/\1/p'; }
chain_ended() { [[ -z "$(squeue -h)" ]]; }
sh out/submit.sh --mem=0 --comment "two  words" > told.txt 2>&1 || fail "submit.sh: $(cat told.txt)"
first=$(jobs)
sh out/submit.sh > told.txt 2>&1 && fail "phase 1 was submitted twice"
grep -q "phase 1 is job $first (.*) already: not submitted again" told.txt || fail "not told: $(cat told.txt)"
[[ $(jobs) == "$first" ]] || fail "phase 1 has two jobs: $(jobs)"
in_time 40 "step 30" has_done runs/t 30
scancel --signal=USR2 "$first"
in_time 120 "the end of the chain" chain_ended
cat t-*.log > out.log
expect_text "all steps done"
[[ $(jobs | wc -l) == "$phases" ]] || fail "not $phases jobs: $(scontrol -o show job)"
[[ $(job_field "$first" Restarts) == 1 ]] || fail "the first job should have two lives"
for job in $(jobs); do
  wait_for_state "$job" COMPLETED 5
  scontrol -o show job "$job" | grep -q "Comment=two  words " || fail "the options of job $job: $(scontrol -o show job "$job")"
  grep -q "^== .* job $job, life 1, " "t-$job.log" || fail "job $job has a life of another job"
done
same_losses whole runs/t 1e-4
python3 - runs/t "$pause" "$end" <<'PY' || fail "lives or steps"
import json, sys
lives = [json.loads(line) for line in open(sys.argv[1] + "/lives.jsonl")]
steps = [json.loads(line)["step"] for line in open(sys.argv[1] + "/log.jsonl")]
assert steps == list(range(1, int(sys.argv[3]) + 1)), steps
ranks = [life["ranks"] for life in lives]
assert ranks[:2] == [1, 1] and ranks[-1] == 2 and ranks == sorted(ranks), lives
assert [life["nodes"] for life in lives] == ranks, lives
assert lives[0]["job"] == lives[1]["job"] and len({life["job"] for life in lives}) == len(lives) - 1, lives
assert all(life["lost_steps"] in (0, None) for life in lives), lives
print(len(lives), "lives on", ranks, "ranks, paused at", sys.argv[2])
PY

echo "a cancelled phase has no next one"
rm -r runs
sh out/submit.sh > told.txt 2>&1
job=$(jobs | sort -n | tail -n 1)
in_time 40 "step 30" has_done runs/t 30
scancel "$job"
in_time 40 "the end of the job" chain_ended
wait_for_state "$job" CANCELLED 5
[[ $(jobs | wc -l) == $((phases + 1)) ]] || fail "another job was submitted: $(scontrol -o show job)"
grep -q '"code": 75' runs/t/exit.json && grep -q '"paused": false' runs/t/exit.json || fail "exit.json: $(cat runs/t/exit.json)"
