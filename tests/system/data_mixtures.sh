# [[data.source]] and [[data.validation]]: the same samples on any cuboid and behind a continuation; a
# loss for each set; data that is not that of the checkpoint.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
head -c 30000 text.txt > a.txt
tail -c 20000 text.txt | tr 'a-m' 'n-z' > b.txt
tail -c 9000 text.txt | tr 'e' '#' > c.txt
for name in a b c; do run 1 tokenize $name.txt -o $name; expect_status 0; done
sed -i '/^train = /d; s/^format = .*/format = "auto"/' input.toml
cat >> input.toml <<'TOML'
[eval]
every_steps = 4
batches = 1
[[data.source]]
files = "a-train.h5"
weight = 0.6
name = "first"
[[data.source]]
files = ["b-train.h5"]
weight = 0.3
[[data.source]]
files = "c-train.h5"
weight = 0.1
[[data.validation]]
name = "of a"
files = "a-train.h5"
[[data.validation]]
name = "of b"
files = "b-train.h5"
TOML
all_losses() { python3 -c 'import json, sys
for line in open(sys.argv[1]):
    record = json.loads(line)
    sets = record.get("valid_losses", {}) | record.get("valid_losses_whole", {})
    print(record["step"], *("%.3f" % x for x in [record["loss"], *(sets[key] for key in sorted(sets))]))' "$1/log.jsonl"; }

run 1 input.toml -d one --set run.steps=8 --set checkpoint.every_steps=4
expect_status 0
all_losses one > one.txt
(($(awk 'NF == 4' one.txt | wc -l) == 2)) || fail "not a loss for each validation set after steps 4 and 8: $(cat one.txt)"
expect_text "validation of b loss .* bits per byte"
# How often each source is read, by its weight: in the first lines, in the dry run, at the end; read again and again it is warned of.
expect_text "tokens in all [0-9.k]* of source first, corpus [0-9.k]*: [0-9.e-]* epochs"
expect_text "epochs so far: [0-9.e-]* of source first, .* of source"
if grep -q "  epoch [0-9]\|Muennighoff" out.log; then fail "sources that are read once at most have epochs in step lines"; fi
python3 - one/run.log <<'PY' || fail "epochs of the sources are not by their weights"
import re, sys
lines = re.findall(r"tokens in all ([0-9.]+)(k?) of source (.+), corpus ([0-9.]+)(k?): ([0-9.e-]+) epoch", open(sys.argv[1]).read())
read = [float(n) * (1000 if k else 1) for n, k, *_ in lines]
assert len(read) == 3 and all(abs(r / sum(read) - w) < 0.01 for r, w in zip(read, (0.6, 0.3, 0.1))), lines
for n, k, name, size, big, epochs in lines:
    assert abs(float(n) * (1000 if k else 1) / (float(size) * (1000 if big else 1)) / float(epochs) - 1) < 0.02, lines
PY
run 1 input.toml -n 1 --set run.steps=3000
expect_status 0
expect_text "warning: the run reads its text .* times (source "
run 1 input.toml -d often --set run.steps=2000 --set run.pause_at=6
expect_status 75
expect_text "  epoch [0-9.]*  left"
grep -q '"epochs":' often/log.jsonl || fail "no epochs in log.jsonl"
expect_text "data [0-9a-f]\{16\}: [0-9]* tokens"
grep -q '^\[\[data.source\]\]' one/resolved.toml || fail "resolved.toml has no sources"

for mesh in "[2,1,1]" "[1,1,2]"; do
  run 2 input.toml -d "mesh$mesh" --set run.steps=8 --set "mesh.cuboid=$mesh"
  expect_status 0
  all_losses "mesh$mesh" > two.txt
  cmp two.txt one.txt || fail "other losses on $mesh"
done
# Two replicas see the same batches.
run 2 input.toml -d replicas --set run.steps=8 --set mesh.replicas=2
expect_status 0
all_losses replicas | cmp - one.txt || fail "other losses with two replicas"

# A continuation, on another cuboid.
cp -r one three
rm -r three/ckpt/step-00000008
run 2 input.toml -d three --set run.steps=8 --set "mesh.cuboid=[1,2,1]"
expect_status 0
expect_text "resumed from three/ckpt/step-00000004"
all_losses three | cmp - one.txt || fail "other losses behind a continuation"

# Another file: a note. The same file with other contents: an error that names it.
cp -r one four
sed 's/a-train.h5/b-train.h5/' input.toml > changed.toml
run 1 changed.toml -d four --set run.steps=9
expect_status 0
expect_text "the data is not that of .*step-00000008.*1 went"
cp a-train.h5 kept.h5
head -c 29000 text.txt > a.txt
run 1 tokenize a.txt -o a
run 1 input.toml -d one --set run.steps=9
expect_status 78
expect_text "a-train.h5 is not the file that one/ckpt/step-00000008 was trained on"
mv kept.h5 a-train.h5
run 1 input.toml -d one --set run.steps=9
expect_status 0

# What is wrong with the lists is said with its line.
run 1 input.toml -d bad --set "data.train='a-train.h5'"
expect_status 78
expect_text "data.train and \[\[data.source\]\] exclude each other"
printf '[[data.source]]\nweight = 1\n[[data.validation]]\nname = "of a"\nfiles = "x"\n' >> input.toml
run 1 input.toml -d bad
expect_status 78
expect_text "input.toml:[0-9]*:.*this \[\[data.source\]\] has no files"
expect_text 'two \[\[data.validation\]\] have the name "of a"'
exit 0
