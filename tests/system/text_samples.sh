# log.samples: the texts that a training writes after its validations are those that generate draws from its weights, on any
# cuboid; training does not change by them, and no byte is without its formula or its axis.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
head -c 400 text.txt > valid.txt
make_input
samples=(--set "data.valid=valid.txt" --set eval.every_steps=10 --set eval.batches=1 --set log.samples=3)

# The first tokens of the first samples, as generate writes them on from the last checkpoint.
texts() { # RANKS CUBOID DIR
  python3 - > prompts.txt <<'PY'
import json
text = open("valid.txt").read()
for first in (0, 32, 64):
    print(json.dumps({"prompt": text[first:first + 16]}))
PY
  run "$1" generate "$3" --prompts prompts.txt --tokens 17 --temperature 0.8 --set "mesh.cuboid=$2"
  expect_status 0
  python3 - screen.log "$3/run.log" <<'PY' || fail "the texts of $3 are not those of generate"
import sys
def show(raw):  # tokens are bytes here, of which a young model makes no characters
    text = ""
    for letter in raw.decode("utf-8", "surrogateescape"):
        code = ord(letter) - 0xDC00 if 0xDC80 <= ord(letter) <= 0xDCFF else ord(letter)
        plain = code == ord(letter) and code >= 32 and code != 127
        text += "\\n" if letter == "\n" else letter if plain else f"\\x{code:02X}"
    return '"' + text + '"'
drawn = open(sys.argv[1], "rb").read()
assert len(drawn) == 3 * 34, len(drawn)  # prompt, text, newline
written = [line for line in open(sys.argv[2], encoding="utf-8").read().split("\n") if "sample " in line]
assert len(written) == 6, written
for n in range(3):
    both = drawn[34 * n:34 * n + 33]
    wanted = f"sample {n + 1}: {show(both[:16])} goes on {show(both[16:])}"
    assert written[3 + n].endswith(wanted), (wanted, written[3 + n])
PY
}

run 1 input.toml -d without "${samples[@]}" --set log.samples=0
expect_status 0
grep -q "^sample" out.log && fail "texts that nobody asked for"
run 1 input.toml -d with "${samples[@]}"
expect_status 0
[[ $(grep -c "^sample [123]: " screen.log) == 6 ]] || fail "not 3 texts after 2 validations"
fields() { sed 's/.*\("step":[0-9]*\).*\("loss":[^,]*\).*\("grad_norm":[^,]*\).*/\1 \2 \3/' "$1/log.jsonl"; }
fields without > a.txt
fields with | cmp -s a.txt - || fail "training depends on the texts"
grep -q "goes on" with/log.jsonl && fail "texts in log.jsonl"
texts 1 "[1,1,1]" with

# Cuboids; two replicas, of which rank 0 has the second.
shape() { # RANKS CUBOID DIR args...
  local ranks=$1 cuboid=$2 dir=$3
  shift 3
  run "$ranks" input.toml -d "$dir" "${samples[@]}" --set "mesh.cuboid=$cuboid" "$@"
  expect_status 0
  grep -q "differ" out.log && fail "bytes differ from the formula"
  expect_text "^ *samples  *[1-9]"
}
shape 2 "[1,2,1]" outputs
texts 2 "[1,2,1]" outputs
shape 6 "[3,1,2]" cuboid
texts 6 "[3,1,2]" cuboid
shape 4 "[2,1,1]" replicas --set mesh.replicas=2 --set "mesh.place=[2,3,0,1]"
texts 2 "[2,1,1]" replicas

# A tokenizer of its own, whose end of a document ends a text.
awk 'BEGIN { for (n = 0; n < 600; ++n) print "{\"text\": \"the king sings\"}" }' > songs.jsonl
run 1 tokenize songs.jsonl -o songs --kind bpe --vocab 280
expect_status 0
run 2 input.toml -d songs --set "data.train='songs-train.h5'" --set "data.valid='songs-train.h5'" --set data.format=auto \
  --set model.vocab=0 --set run.steps=40 --set log.samples=1
expect_status 0
expect_text '^sample 1: "the king sings.*" goes on ".*sings'

# Without a validation text there is nothing to write on; without a tokenizer nobody could read it.
run 1 input.toml -d none --set log.samples=2
expect_status 78
expect_text "log.samples needs data.valid"
python3 -c 'import sys; sys.stdout.buffer.write(bytes((n * n // 7) % 251 if n % 2 == 0 else 0 for n in range(20000)))' > ids.bin
run 2 input.toml -d ids --set data.train=ids.bin --set data.valid=ids.bin --set data.format=u16 --set model.vocab=300 --set log.samples=2
expect_status 0
expect_text "warning.*log.samples: no texts, the tokenizer is not known"
true
