# generate: a trained model writes the same text with and without batch-mates and on every cuboid; stop strings, the end of
# the context, batches from a file and from standard input, JSON, and what is said of bad input.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
run 1 input.toml -d r --set model.dropout=0 --set run.steps=60
expect_status 0

# The three prompts alone, then in one batch, in two batches, and on cuboids with batch-mates and padding.
prompts=("the old king" "a ship" "stone and bread and river")
printf '%s\n' "${prompts[@]}" > prompts.txt
for prompt in "${prompts[@]}"; do
  run 1 generate r --prompt "$prompt" --tokens 12 --greedy
  expect_status 0
  cat screen.log
done > alone.txt
for batch in 1 2 8; do
  run 1 generate r --prompts prompts.txt --tokens 12 --greedy --batch $batch
  expect_status 0
  cmp -s screen.log alone.txt || fail "the texts depend on the batch"
done
expect_text ", $((12 * $(wc -l < prompts.txt))) written in .* tokens/s"
for cuboid in "4 [2,1,2]" "2 [1,2,1]" "6 [3,1,2]"; do
  read -r ranks shape <<< "$cuboid"
  run "$ranks" generate r --prompts - --tokens 12 --greedy --set "mesh.cuboid=$shape" < prompts.txt
  expect_status 0
  cmp -s screen.log alone.txt || fail "the texts depend on the cuboid $shape"
done

# A drawn text does not depend on its batch-mates either; its number counts.
sample=(--tokens 10 --top-k 20 --top-p 0.9 --seed 5 --json)
run 1 generate r --prompt "the old king" --prompt "a ship" "${sample[@]}"
cp screen.log both.txt
run 1 generate r --prompt "the old king" "${sample[@]}"
head -n 1 both.txt | cmp -s - screen.log || fail "a drawn text depends on its batch-mates"
python3 - both.txt <<'PY' || fail "the JSON lines are wrong"
import json, sys
texts = [json.loads(line) for line in open(sys.argv[1])]
assert [t["index"] for t in texts] == [0, 1] and [t["prompt"] for t in texts] == ["the old king", "a ship"]
assert all(t["tokens"] == 10 and t["end"] == "length" and t["text"] for t in texts)
PY

# The text ends before a stop string, which tokens (bytes here) spell out one by one.
full=$(sed -n 1p alone.txt)
added=${full#the old king}
run 1 generate r --prompt "the old king" --tokens 12 --greedy --stop "${added:5:3}" --stop zzz --json
expect_status 0
expect_text "\"text\":\"${added%%"${added:5:3}"*}\""
expect_text '"end":"stop"'
run 1 generate r --prompt "the old king" --tokens 12 --greedy --no-stream
[[ $(cat screen.log) == "$full" ]] || fail "--no-stream gives another text"

# The end of a document ends a text, unless it is not to.
awk 'BEGIN { for (n = 0; n < 600; ++n) print "{\"text\": \"the king sings\"}" }' > songs.jsonl
run 1 tokenize songs.jsonl -o songs --kind bpe --vocab 280
expect_status 0
run 1 input.toml -d songs --set "data.train='songs-train.h5'" --set data.format=auto --set model.vocab=0 --set run.steps=40
expect_status 0
run 1 generate songs --prompt "the king" --tokens 30 --greedy --json
expect_text '"text":" sings".*"end":"eos"'
run 1 generate songs --prompt "the king" --tokens 30 --greedy --json --ignore-eos
expect_text '"tokens":30,"end":"length"'

# Longer than the context of 32: the last 32 tokens count.
run 1 generate r --prompt "the old king" --tokens 40 --greedy
expect_status 0
[[ $(wc -c < screen.log) == 53 ]] || fail "a long text is cut: $(cat screen.log)"
cp screen.log long.txt
run 4 generate r --prompt "the old king" --prompt "a ship" --tokens 40 --greedy --set "mesh.cuboid=[1,2,2]"
head -n 1 screen.log | cmp -s - long.txt || fail "the text behind the context depends on the cuboid"

# Bad input.
bad() { # status text ranks args...
  local status_wanted=$1 text=$2
  shift 2
  run "$@"
  expect_status "$status_wanted"
  expect_text "$text"
}
bad 78 "prompt 1 has 33 tokens, the model's context 32" 1 generate r --prompt "$(printf '%033d' 0)"
bad 78 "prompt 2 has 40 tokens" 2 generate r --prompt a --prompt "$(printf '%040d' 0)" --set "mesh.cuboid=[1,1,2]"
printf '\n\n' > empty.txt
bad 78 "there is no prompt in empty.txt" 2 generate r --prompts empty.txt
printf '{"prompt": "a"}\n{"prompt": \n' > broken.jsonl
bad 78 "broken.jsonl:2 is not a JSON object" 2 generate r --prompts broken.jsonl
bad 66 "there is no absent.txt" 1 generate r --prompts absent.txt
bad 74 "it is a folder" 1 generate r --prompts r

# Who reads the text goes away: an error, on all ranks at once.
timeout 60 mpirun -n 2 --oversubscribe bash -c '"$0" "$@" | head -c 5 > /dev/null; exit ${PIPESTATUS[0]}' \
  "$T3D_BIN" generate r --prompt "the old king" --tokens 2000 --greedy > out.log 2>&1
status=$?
((status == 74)) || fail "a closed pipe ends with $status"
expect_text "standard output: Broken pipe"
