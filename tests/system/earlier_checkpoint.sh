# A checkpoint written by an earlier version, whose files hold no plan, continues: on the ranks that
# wrote it with the same losses, on others with those of another order of sums.
. "$T3D_SOURCE/tests/support/job.sh"
earlier=$T3D_SOURCE/tests/reference/earlier_checkpoint
. "$earlier/input.sh"
make_earlier_input

continues() { # DIR RANKS TOLERANCE args...
  local dir=$1 ranks=$2 tolerance=$3
  shift 3
  mkdir -p "$dir/ckpt"
  cp -r "$earlier"/step-* "$dir/ckpt"
  run "$ranks" input.toml -d "$dir" "$@"
  expect_status 0
  expect_text "resumed from $dir/ckpt/step-00000006 at step 6"
  losses "$dir" > now.txt
  [[ $(wc -l < now.txt) == 6 ]] || fail "$dir: not the steps 7 to 12"
  paste "$earlier/losses.txt" now.txt | awk -v e="$tolerance" '
    { d = ($2 > $4 ? $2 - $4 : $4 - $2); if ($1 != $3 || d > e * $2) { print; bad = 1 } }
    END { exit bad }' || fail "$dir: other losses than the earlier version's"
}
# The same sums; another processor's products may round otherwise.
continues same 2 1e-14
grep -q 'plan' same/plan.toml || fail "the run has no plan"
# One replica of two leaves; every matrix cut in another way.
continues other 4 1e-12 --set "mesh.cuboid=[1,2,1]"
continues alone 1 1e-12 --set mesh.replicas=1 --set aggregate.leaves=2

# Leaves of the checkpoint's method, although the input does not name the method again: with the plan
# taken out of the checkpoint, the run goes on as with it.
run 2 input.toml -d planned --set run.steps=4 --set aggregate.leaves=2
expect_status 0
cp -r planned bare
python3 - bare/ckpt/step-00000004/MANIFEST.json <<'PY' || fail "the plan is not taken out"
import json, re, sys
def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc
text = open(sys.argv[1]).read()
line = re.search(r'^"texts": (\{.*\}),$', text, re.M)
kept = {key: value for key, value in json.loads(line[1]).items() if not key.startswith("plan")}
body = text[:line.start(1)] + json.dumps(kept) + text[line.end(1):]
body = body[:body.rindex('"crc32c": ')]
open(sys.argv[1], "w").write(body + '"crc32c": "%08x"}\n' % crc32c(body.encode()))
PY
sed -i '/^method/d' input.toml
for dir in planned bare; do
  run 2 input.toml -d $dir --set run.steps=8
  expect_status 0
  expect_text "resumed from $dir/ckpt/step-00000004 at step 4"
done
cmp planned/plan.toml bare/plan.toml || fail "another plan than the checkpoint's run had"
same_losses planned bare 0

# -r PATH begins there each time that it is written; that the folder has been brought on is said.
run 2 input.toml -d onward -r planned --set run.steps=10
expect_status 0
grep -q "begins again" out.log && fail "a first call has nothing to warn of"
run 2 input.toml -d onward -r planned --set run.steps=10
expect_status 0
expect_text "warning: -r planned begins again from planned/ckpt/step-00000008; onward/ckpt/step-00000010 stays, and is not continued: the same command without -r continues it"
run 2 input.toml -d onward --set run.steps=12
expect_status 0
expect_text "resumed from onward/ckpt/step-00000010.lineage-1 at step 10"

# A checkpoint of a version that had balance.predictor and the rules of LB-BSP: a job that is put back into
# the queue has its old input, and goes on with a warning of each key. So does the input that the checkpoint keeps.
earlier=$T3D_SOURCE/tests/reference/earlier_balance
. "$earlier/input.sh"
make_balance_input
for input in input.toml kept.toml; do
  rm -rf balance && mkdir -p balance/ckpt
  tar xzf "$earlier/step-00000003.tar.gz" -C balance/ckpt
  python3 - balance/ckpt/step-00000003/MANIFEST.json > kept.toml <<'PY'
import json, sys
print(json.load(open(sys.argv[1]))["texts"]["input"])
PY
  run 2 $input -d balance --set checkpoint.dir=balance/ckpt --set run.steps=6
  expect_status 0
  expect_text "resumed from balance/ckpt/step-00000003 at step 3"
  for text in 'balance.kind = "lbbsp_numeric" is of an earlier version and is read as "model"' \
    "balance.predictor is no longer read: speeds are measured" "balance.coarse_step is no longer read"; do
    [[ $(grep -c "warning: $text" balance/run.log) == 1 ]] || fail "$input: not one warning: $text"
  done
  grep -q "lbbsp\|predictor" balance/resolved.toml && fail "the resolved input has what is no longer read"
  losses balance > now.txt
  paste "$earlier/losses.txt" now.txt | awk '
    { d = ($2 > $4 ? $2 - $4 : $4 - $2); if (NF != 4 || $1 != $3 || d > 1e-5 * $2) { print; bad = 1 } }
    END { exit bad || NR != 3 }' || fail "$input: other losses than the earlier version's"
done
