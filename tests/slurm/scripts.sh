# slow: a hundred seconds
# Every script of jobs/ as it is, and a script that --write-sbatch wrote, on a real Slurm.
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
cp input.toml shown.toml
start_cluster 4 --cpus 4 --conf AuthInfo=cred_expire=5
one=(shown.toml --set run.steps=20)
run 1 "${one[@]}" -d whole
expect_status 0

done_with() { # JOB RUN STEPS LOG
  wait_for_state "$1" COMPLETED 60
  cp "$4" out.log
  expect_text "all steps done"
  [[ $(wc -l < "$2/log.jsonl") == "$3" ]] || fail "$2 does not have $3 steps"
}
scripts=$T3D_SOURCE/jobs

job=$(submitted "$scripts/one_node.sbatch" "${one[@]}" -d runs/one)
done_with "$job" runs/one 20 "transformer3d-$job.log"
same_losses whole runs/one 1e-4

job=$(submitted "$scripts/many_nodes.sbatch" "${one[@]}" -d runs/many --set hetero.speeds=probe --set hetero.probe_seconds=1)
done_with "$job" runs/many 20 "transformer3d-$job.log"
expect_text " 8 ranks"
same_losses whole runs/many 1e-4

# Two components, one world of eight ranks: the slower nodes get less. (What is measured says little where all
# nodes share two cores.)
cp shown.toml het.toml
printf '[[nodes]]\nname = "n3"\nspeed = 1\n[[nodes]]\nname = "*"\nspeed = 8\n' >> het.toml
job=$(submitted "$scripts/heterogeneous.sbatch" het.toml --set run.steps=20 -d runs/het --set mesh.cuboid='[1,1,1]' --set mesh.replicas=8 \
  --set batch.sequences=32 --set batch.micro=0)
done_with "$job" runs/het 20 "transformer3d-$job.log"
expect_text " 8 ranks"
python3 - runs/het/log.jsonl <<'PY' || fail "the slow component does not get less"
import json, sys
last = json.loads(open(sys.argv[1]).readlines()[-1])
assert sum(last["slab_sequences"]) == 32 and max(last["slab_sequences"]) >= 2 * min(last["slab_sequences"]), last["slab_sequences"]
PY

# A chain of jobs where nobody requeues: three time limits, one run.
job=$(submitted "$scripts/chain.sbatch" shown.toml --set debug.threads=1 --set run.steps=6000 --set run.hours=0.0025 --set log.every_steps=1000 --set checkpoint.every_steps=100)
chain_ended() { [[ -z "$(squeue -h)" ]] && grep -qs '"code": 0' runs/t/exit.json; }
in_time 240 "the end of the chain" chain_ended
jobs=$(ls transformer3d-*.log | wc -l)
[[ $(wc -l < runs/t/log.jsonl) == 6000 ]] || fail "the chain does not have 6000 steps"
python3 - runs/t/lives.jsonl <<'PY' || fail "lives.jsonl of the chain"
import json, sys
lives = [json.loads(line) for line in open(sys.argv[1])]
assert len(lives) >= 2 and len({life["job"] for life in lives}) == len(lives), lives
assert all(life["code"] == 75 and "time limit" in life["reason"] and life["lost_steps"] == 0 for life in lives[:-1]), lives
print(len(lives), "jobs")
PY

job=$(submitted "$scripts/scaling.sbatch" shown.toml)
for task in 0 1 2; do
  wait_for_state "${job}_$task" COMPLETED 60
  [[ $(wc -l < "runs/scaling-$((1 << task))/log.jsonl") == 30 ]] || fail "not 30 steps on $((1 << task)) ranks"
done

# A study, submitted twice: the later job gives way; submitted once more, it measures operators that are missing.
"$T3D_BIN" scaling shown.toml --ranks 1,2 --repeat 2 --steps 10 --slurm -o study > out.log 2>&1 || fail "scaling --slurm"
job=$(submitted study/study.sbatch)
second=$(submitted study/study.sbatch)
for task in 0 1 2 3; do
  wait_for_state "${job}_$task" COMPLETED 60
  wait_for_state "${second}_$task" FAILED 10
done
grep -q "is the study of job $job, too" "study/slurm-$second-0.log" || fail "the second job: $(cat study/slurm-$second-*.log)"
rm study/ranks-2/operators.json
third=$(submitted study/study.sbatch)
for task in 0 1 2 3; do wait_for_state "${third}_$task" COMPLETED 60; done
[[ -s study/ranks-2/operators.json && -z $(ls -d study/*/*unfinished* 2> /dev/null) ]] || fail "not the missing operators alone"

SLURM_CONF=$SLURM_CONF timeout 60 "$scripts/interactive.sh" "${one[@]}" -d runs/interactive > out.log 2>&1
status=$?
expect_status 0
expect_text " 2 ranks"

"$T3D_BIN" "${one[@]}" -d "runs/a b" --write-sbatch 3 > written.sbatch || fail "--write-sbatch"
job=$(submitted -o written-%j.log written.sbatch)
done_with "$job" "runs/a b" 20 "written-$job.log"
expect_text " 3 ranks"
