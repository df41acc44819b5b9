# What mixtures of unequal nodes promise: ranks are ranks, however many a node has and whatever their
# replicas look like; every replica has its own part of the batch, also none; targets weigh the same
# wherever they are read; a run goes on with other ranks.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
common=(input.toml --set batch.sequences=12 --set schedule.kind=constant --set run.steps=16 --set debug.threads=1)
run 1 "${common[@]}" -d one
expect_status 0

# Replicas of 2, 1 and 2 ranks of different shapes, with 6 (in two passes of 2+1), 4 and 2 sequences.
mixed=(--set mesh.replicas=3 --set "mesh.cuboids=[2,1,1, 1,1,1, 1,2,1]" --set "batch.shares=[3,2,1]")
run 5 "${common[@]}" "${mixed[@]}" -d mixed
expect_status 0
same_losses one mixed 1e-4
grep -q '"slab_sequences":\[4,2,4,2\]' mixed/log.jsonl || fail "not 4+2, 4 and 2 sequences"
grep -q differ out.log && fail "bytes differ from the formula"

# Ranks of a step without a share still hold their part, and the loss does not notice.
run 3 "${common[@]}" --set mesh.replicas=3 --set "batch.shares=[2,0,1]" -d zero
expect_status 0
same_losses one zero 1e-4
grep -q '"slab_sequences":\[8,0,4\]' zero/log.jsonl || fail "not 8, 0 and 4 sequences"

# Targets that do not count: spaces, of which some samples have many more than others.
awk 'BEGIN { while (n < 20000) { line = (int(n / 3000) % 2) ? "a  b      " : "thequickbrownfoxjumpsover "; printf "%s", line; n += length(line) } }' > spaces.txt
masked=(--set "data.train='spaces.txt'" --set data.ignore_token=32)
run 1 "${common[@]}" "${masked[@]}" -d masked-one
expect_status 0
run 2 "${common[@]}" "${masked[@]}" --set mesh.replicas=2 --set "batch.shares=[1,2]" -d masked
expect_status 0
same_losses masked-one masked 1e-4

# Three ranks, then two with other shares, then one replica of four.
part=("${common[@]}" "${masked[@]}" -d moved)
run 3 "${part[@]}" --set mesh.replicas=3 --set "batch.shares=[3,2,1]" --set run.steps=6
expect_status 0
run 2 "${part[@]}" --set mesh.replicas=2 --set "batch.shares=[1,3]" --set run.steps=11
expect_status 0
expect_text "resumed from moved/ckpt/step-00000006"
run 4 "${part[@]}" --set mesh.replicas=1 --set "mesh.cuboid=[2,2,1]" --set "mesh.tokens=[2,1]" --set "batch.shares=[1]"
expect_status 0
expect_text "resumed from moved/ckpt/step-00000011"
same_losses masked-one moved 1e-4
[[ $(sed -n 's/.*"slab_sequences":\(\[[0-9,]*\]\).*/\1/p' moved/log.jsonl | uniq | tr '\n' ' ') == "[6,4,2] [3,9] [9,3] " ]] || fail "not the asked shares"
