# What mixtures of unequal nodes promise: ranks are ranks, however many a node has and whatever their
# replicas look like; every replica has its own part of the batch, also none; targets weigh the same
# wherever they are read; a run goes on with other ranks.
# rotates
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

# The example, as its head says, beside one rank that reads the same.
example=("$T3D_SOURCE/inputs/mixture.toml" --set "data.train='text.txt'" --set debug.threads=1 --set log.every_steps=20)
run 5 "${example[@]}" -d example --set run.steps=8
expect_status 0
run 3 "${example[@]}" -d example --set run.steps=12 --set "mesh.cuboids=[1,1,1, 1,1,1, 1,1,1]" --set "batch.shares=[2,0,1]"
expect_status 0
expect_text "resumed from example/ckpt/step-00000008"
run 1 "${example[@]}" -d example-one --set run.steps=12 --set mesh.replicas=1 --set "mesh.cuboids=[1,1,1]" --set "batch.shares=[1]"
expect_status 0
same_losses example-one example 1e-4

# A node of three ranks beside a slower one of one rank: sequences by the stated speeds, a file of each node
# in the checkpoint. Names of nodes by process need the right to give them.
if ! unshare -u true 2> /dev/null; then
  echo "skipped: nodes of unlike numbers of ranks, since names of hosts cannot be set here"
  exit 0
fi
cat > on_nodes <<SH
#!/bin/bash
((\${OMPI_COMM_WORLD_RANK:-\$PMIX_RANK} == 3)) && node=old || node=new
exec unshare -u bash -c 'hostname "\$1"; shift; exec "\$@"' - "\$node" "$T3D_BIN" "\$@"
SH
chmod +x on_nodes
T3D_BIN=$PWD/on_nodes
cp input.toml nodes.toml
printf '[[nodes]]\nname = "n*"\nspeed = 4\n[[nodes]]\nname = "old"\nspeed = 1\n' >> nodes.toml
run 4 nodes.toml "${common[@]:1}" --set "mesh.cuboid=[4,1,1]" -d nodes --set run.steps=10
expect_status 0
last=$(sed -n 's/.*"slab_sequences":\[[0-9]*,[0-9]*,[0-9]*,\([0-9]*\)\].*/\1/p' nodes/log.jsonl | sort -u)
[[ $last == 0 || $last == 1 ]] || fail "the node of a quarter of the speed got $last of 12 sequences"
[[ $(ls nodes/ckpt/step-00000010 | grep -c '^node-') == 2 ]] || fail "not a file of each node"
run 4 nodes.toml "${common[@]:1}" --set "mesh.cuboid=[4,1,1]" -d nodes
expect_status 0
same_losses one nodes 1e-4
