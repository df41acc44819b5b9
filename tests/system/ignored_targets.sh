# Padding in the middle of a text: a step that has no other targets is passed over with a warning, the
# same for one rank and for two, also for one that continues there. A text of nothing else is refused.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 2000
{ cat text.txt; head -c 1000 /dev/zero | tr '\0' '~'; cat text.txt; } > padded.txt
make_input
padded=(--set data.train=padded.txt --set data.ignore_token=126 --set data.shuffle=false --set schedule.kind=constant --set run.steps=16)
run 1 input.toml "${padded[@]}" --set run.name=one
expect_status 0
expect_text "warning: step 10: no target of its samples counts"
[[ $(grep -c 'no target' screen.log) == 3 ]] || fail "not three steps without targets"
run 2 input.toml "${padded[@]}" --set run.name=two --set mesh.replicas=2 --set checkpoint.every_steps=10 --set run.steps=10
expect_status 0
run 2 input.toml "${padded[@]}" --set run.name=two --set mesh.replicas=2
expect_status 0
expect_text "resumed from .* at step 10"
python3 - <<'PY' || fail "the losses differ, or a step is missing"
import json, sys
one, two = ([json.loads(line)["loss"] for line in open(f"runs/{name}/log.jsonl")] for name in ("one", "two"))
print(one, two)
pairs = list(zip(one, two))
same = all(a == b if a is None else abs(a - b) < 1e-4 * a for a, b in pairs)
sys.exit(not (same and len(one) == len(two) == 16 and one.count(None) == 3))
PY
head -c 3000 /dev/zero | tr '\0' '~' > padded.txt
run 2 input.toml "${padded[@]}" --set run.name=none --set mesh.replicas=2
expect_status 78
expect_text "no target of data.train counts"
