# slow: a minute
# Submitted once for two to four nodes: a node is drained, the next life has three; it comes back, and so does
# the next life, to four. The samples go on, and the losses are those of an undisturbed run.
source "$T3D_SOURCE/tests/support/slurm.sh"
make_text 20000
make_input
sed -i 's/^steps = .*/steps = 600/; s/^name = .*/name = "e"/' input.toml
sed -i 's/^lr = .*/lr = 3e-4\n[schedule]\nkind = "constant"/' input.toml
printf '[mesh]\nreplicas = "auto"\ncuboid = "auto"\n' >> input.toml

start_cluster 4 --conf AuthInfo=cred_expire=5
SLURM_PMIX_FENCE=tree srun -N 4 "$T3D_BIN" input.toml -d whole > whole.log 2>&1 ||
  fail "the undisturbed run: $(tail -n 5 whole.log)"

job=$(submitted --nodes=2-4 "$T3D_SOURCE/jobs/preemptible.sbatch" input.toml)
log=transformer3d-$job.log
has_line() { grep -qs -- "$1" "$log"; }
in_time 60 "step 30" has_done runs/e 30
has_line "life 1, on n\[1-4\]" || fail "the first life should have all nodes: $(grep life "$log")"

scontrol update NodeName=n3 State=drain Reason=test
scancel --signal=USR2 "$job"
in_time 60 "a life on three nodes" has_line "^plan: ranks 4 -> 3, nodes 4 -> 3, mesh "
has_line "life 2, on n\[1-2,4\]" || fail "the second life should have the nodes that are left: $(grep life "$log")"
step=$(sed -n 's/^resumed from .* at step //p' "$log" | tail -n 1)
in_time 60 "a step of the second life" has_done runs/e $((step + 30))

scontrol update NodeName=n3 State=resume
scancel --signal=USR2 "$job"
in_time 60 "a life on four nodes" has_line "^plan: ranks 3 -> 4, nodes 3 -> 4, mesh "
has_line "life 3, on n\[1-4\]" || fail "the third life should have all nodes again: $(grep life "$log")"
wait_for_state "$job" COMPLETED 60
same_losses whole runs/e 1e-4
python3 - runs/e/lives.jsonl <<'PY' || fail "lives.jsonl"
import json, sys
lives = [json.loads(line) for line in open(sys.argv[1])]
assert [(life["nodes"], life["ranks"]) for life in lives] == [(4, 4), (3, 3), (4, 4)], lives
assert [life["lost_steps"] for life in lives] == [0, 0, None], lives
PY
