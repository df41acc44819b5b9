# One of two replicas becomes slower in the middle: its part of the batch shrinks, the losses stay, the
# run says why, and its plans replay. Both ranks are put on one core, so that their CPU time counts: what else
# the machine does is not taken for a slow rank.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
use_one_core
common=(input.toml --set mesh.replicas=2 --set model.hidden=128 --set model.context=64 --set batch.sequences=24
  --set optimizer.lr=3e-4 --set schedule.kind=constant --set log.every_steps=10)
slow=(--set "emulate.schedule=[\"6:1:3\"]")

# slabs DIR: "step first second" of every step
slabs() { sed -n 's/.*"step":\([0-9]*\),.*"slab_sequences":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2 \3/p' "$1/log.jsonl"; }
last_slabs() { slabs "$1" | tail -n 1 | cut -d ' ' -f 2-; }
expect_moved() { # DIR: in the end rank 0 has more than rank 1, and nothing is lost
  local first second
  read -r first second <<< "$(last_slabs "$1")"
  ((first > second && first + second == 24)) || fail "$1: $first+$second sequences in the end"
}

run 2 "${common[@]}" "${slow[@]}" -d off --set run.steps=46 --set balance.kind=off
expect_status 0
[[ $(slabs off | cut -d ' ' -f 2- | sort -u) == "12 12" ]] || fail "off changes shares"
[[ $(ls off/plans) == 0.toml ]] || fail "off has several plans"
expect_text "emulated: some ranks are made slower"
grep -q "^ *1 .*slower (" screen.log || fail "the end table does not say that rank 1 is slower"
grep -q "^ *0 .*slower (" screen.log && fail "the end table says that rank 0 is slower"

run 2 "${common[@]}" "${slow[@]}" -d model --set run.steps=40 --set balance.kind=model --set "run.name='a & <b>'"
expect_status 0
expect_moved model
changes=$(grep -c "sequences by slab .* -> .*slowest is replica 1" model/run.log)
((changes > 0)) || fail "run.log does not say why the shares move"
[[ $(slabs model | awk '$1 <= 6' | cut -d ' ' -f 2- | sort -u) == "12 12" ]] || fail "shares move before rank 1 is slow"
grep -q "differ" out.log && fail "bytes differ from the formula"
[[ $(wc -l < model/log.jsonl) == 40 ]] || fail "not 40 lines in log.jsonl"
for key in '"rank_milliseconds":{"own":\[[0-9.]*,[0-9.]*\]' '"slab_sequences"' '"emulated":true'; do
  [[ $(grep -c "$key" model/log.jsonl) == 40 ]] || fail "log.jsonl: not every step has $key"
done
python3 - model/ranks.svg << 'PY' || fail "ranks.svg is not well-formed"
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
texts = [text for text in root.itertext()]
assert root.tag.endswith("svg") and len(texts) > 10 and any("a & <b>" in text for text in texts), texts
PY
grep -q emulated model/ranks.svg || fail "ranks.svg does not say that it is emulated"

# Every plan has its file, named by the last step before it; they make the same run, to the bit.
cmp -s model/plan.toml "model/plans/$(ls model/plans | sort -n | tail -n 1)" || fail "plan.toml is not the last plan"
wishes=""
for file in $(ls model/plans | sort -n); do
  step=${file%.toml}
  ((step == 0)) && continue
  wishes+="\"$step:model/plans/$file\", "
  [[ $(slabs model | awk -v s="$step" '$1 == s' | cut -d ' ' -f 2-) != \
    $(slabs model | awk -v s="$step" '$1 == s + 1' | cut -d ' ' -f 2-) ]] || fail "nothing changes after step $step"
done
run 2 "${common[@]}" -d replay --set run.steps=40 --set "debug.replan=[${wishes%, }]"
expect_status 0
same_losses model replay 0
[[ $(slabs model) == "$(slabs replay)" ]] || fail "the plans do not replay"
grep -q '"emulated":true' replay/log.jsonl && fail "the replay is called emulated"

# What comes after the checkpoint goes on with the shares that it has; all losses are those of `off`.
before=$(last_slabs model)
run 2 "${common[@]}" -d model --set run.steps=46
expect_status 0
expect_text "resumed from model/ckpt/step-00000040"
[[ $(slabs model | awk '$1 > 40' | cut -d ' ' -f 2- | sort -u) == "$before" ]] || fail "the shares do not go on"
same_losses off model 1e-5

# speeds FILE factors...: what a probe of ranks of these speeds would write
speeds() {
  local file=$1 separator=""
  shift
  echo '{"ranks": [' > "$file"
  for factor in "$@"; do
    awk -v s="$separator" -v f="$factor" 'BEGIN { printf "%s{\"matmul\": %g, \"attention\": %g, \"whole\": %g, \"streamed\": %g}\n",
      s, 4e10 * f, 4e10 * f, 4e10 * f, 1e10 * f }' >> "$file"
    separator=", "
  done
  echo ']}' >> "$file"
}

# A rank so slow that it gets nothing: the others are balanced all the same, and it comes back.
speeds idle.json 1 1 0.1
three=(input.toml --set mesh.replicas=3 --set batch.sequences=12 --set run.steps=110 --set model.hidden=64)
run 3 "${three[@]}" -d idle --set balance.kind=model --set hetero.speeds=file --set hetero.file=idle.json \
  --set "emulate.slowdown=[1,1,10]" --set "emulate.schedule=[\"4:0:3\",\"30:0:1\",\"30:2:1\"]"
expect_status 0
of_three() { sed -n 's/.*"step":\([0-9]*\),.*"slab_sequences":\[\([0-9,]*\)\].*/\1 \2/p' "$1/log.jsonl"; }
[[ $(of_three idle | head -n 1) == "1 6,6,0" ]] || fail "the slow rank has sequences at once"
of_three idle | awk '$1 == 30 { split($2, n, ","); exit !(n[2] > n[1]) }' || fail "an idle rank keeps others from their balance"
of_three idle | tail -n 1 | awk '{ split($2, n, ","); exit !(n[3] > 1) }' || fail "the idle rank does not come back"

# Whole leaves: as many as there is room for, with the samples that they have; planned or moved.
leaves=(input.toml --set mesh.replicas=4 --set aggregate.method=adasum --set batch.micro=0 --set model.dropout=0)
run 4 "${leaves[@]}" -d full --set aggregate.leaves=16 --set batch.sequences=64 --set run.steps=12 \
  --set balance.kind=model --set "emulate.slowdown=[1,1,1,6]"
expect_status 0
few=("${leaves[@]}" --set aggregate.leaves=3 --set batch.sequences=24 --set run.steps=3)
speeds leaves.json 1 1 1 0.3
run 4 "${few[@]}" -d even
expect_status 0
run 4 "${few[@]}" -d planned --set hetero.speeds=file --set hetero.file=leaves.json
expect_status 0
[[ $(of_three planned | head -n 1) == "1 8,8,6,2" ]] || fail "the leaves do not follow the speeds: $(of_three planned | head -n 1)"
same_losses even planned 1e-5

# What is written stays, unless balancing is asked for.
written=(input.toml --set mesh.replicas=2 --set "batch.shares=[3,1]" --set run.steps=20)
sed -i '/^\[balance\]/,+1d' input.toml
run 2 "${written[@]}" -d written
expect_status 0
[[ $(slabs written | cut -d ' ' -f 2- | sort -u) == "6 2" ]] || fail "written shares change"
expect_text "stays divided as it is written"
# Emulated, since on one core other shares make no step shorter, and are taken back.
run 2 "${written[@]}" -d asked --set balance.kind=model --set "emulate.slowdown=[4,4]" --set model.hidden=128 \
  --set optimizer.lr=3e-4
expect_status 0
[[ $(last_slabs asked) =~ ^[345]\ [345]$ ]] || fail "asked for, the balancer does nothing: $(last_slabs asked)"

# A continued run shows its own steps alone: its first report has no times of a step before.
run 2 "${common[@]}" "${slow[@]}" -d off --set run.steps=60 --set balance.kind=off
expect_status 0
python3 - off/ranks.svg << 'PY' || fail "ranks.svg of a continued run shows steps before its first"
import sys, xml.etree.ElementTree as tree
texts = list(tree.parse(sys.argv[1]).getroot().itertext())
steps = [text for text in texts[texts.index("own time, ms per step") + 1:texts.index("step")] if text.strip()]
assert steps and min(map(float, steps)) > 46, texts
PY
