# tokenize: folders of texts and JSONL by one process, several and after a kill give one file; bad
# lines; other formats, which train as ours do.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 150000
make_input
mkdir -p in/more
awk '{ print "{\"text\": \"" $0 "\", \"q\": \"" $1 "\"}" }' text.txt > in/a.jsonl
awk '{ print "{\"text\": \"" $2 "\"}" }' text.txt > in/more/b.jsonl
for _ in $(seq 12); do cat text.txt; done > in/more/c.txt

run 1 tokenize in -o one --valid 0.1 --threads 1
expect_status 0
expect_text "documents, .* MB/s of input by 1 thread"
run 3 tokenize in -o three --valid 0.1
expect_status 0
for part in train valid; do cmp one-$part.h5 three-$part.h5 || fail "three ranks wrote another $part file"; done
[[ ! -e one.parts && ! -e three.parts ]] || fail "parts are left"

# Without --valid the valid file of before holds texts of the new train file.
cp one-train.h5 stale-train.h5 && cp one-valid.h5 stale-valid.h5
run 1 tokenize in/a.jsonl -o stale
expect_status 0
expect_text "warning: stale-valid.h5 is of an earlier command.*remove it, or call again with --valid"
cmp one-valid.h5 stale-valid.h5 || fail "the older file was changed"

# Killed in the middle: the next command takes what is finished. BPE is slow enough to be met.
run 1 tokenize in -o bpe --kind bpe --vocab 300
expect_status 0
"$T3D_BIN" tokenize in -o again --model bpe-train.h5 --threads 1 > /dev/null 2>&1 &
job=$!
for _ in $(seq 2000); do
  compgen -G 'again.parts/*-train.h5' > /dev/null && break
  sleep 0.01
done
kill -KILL $job
wait $job 2> /dev/null
compgen -G 'again.parts/*-train.h5' > /dev/null || fail "no part was finished before the kill"
run 2 tokenize in -o again --model bpe-train.h5
expect_status 0
expect_text "[1-9] of [0-9]* parts were there"
cmp bpe-train.h5 again-train.h5 || fail "the kill changed the tokens"

# A broken line.
{ head -n 40 in/a.jsonl; echo '{"text": oh'; tail -n +41 in/a.jsonl; } > bad.jsonl
run 2 tokenize bad.jsonl -o bad
expect_status 78
expect_text "bad.jsonl:41: not JSON.*--on-bad-line skip"
[[ ! -e bad-train.h5 ]] || fail "tokens of a text with a bad line"
run 2 tokenize bad.jsonl -o bad --on-bad-line skip
expect_status 0
expect_text "1 bad line was left out; the first: bad.jsonl:41"
run 1 tokenize in/a.jsonl -o pairs --prompt-field q
expect_status 64
run 1 tokenize in/a.jsonl -o pairs --prompt-field q --completion-field text
expect_status 0
run 1 inspect pairs-train.h5 --verify
expect_status 0
expect_text "some tokens do not count in the loss"

# The same tokens in three formats: the same losses. Pairs train on completions.
for format in megatron llmc hdf5; do
  run 1 tokenize in/a.jsonl -o $format --format $format
  expect_status 0
done
run 1 inspect megatron-train.idx
expect_status 0
expect_text "megatron-train.bin: .* tokens of 2 bytes, .* documents"
all_losses() { python3 -c 'import json, sys
for line in open(sys.argv[1]):
    record = json.loads(line)
    if "loss" in record: print(record["step"], record["loss"])' "$1/log.jsonl"; }
for file in megatron-train.bin llmc-train-000000.bin hdf5-train.h5 pairs-train.h5; do
  run 1 input.toml -d "runs/$file" --set run.steps=3 --set data.format=auto --set "data.train='$file'"
  expect_status 0
  all_losses "runs/$file" > "$file.losses"
done
cmp megatron-train.bin.losses hdf5-train.h5.losses || fail "Megatron's format trains another way"
cmp llmc-train-000000.bin.losses hdf5-train.h5.losses || fail "llm.c's format trains another way"
cmp -s pairs-train.h5.losses hdf5-train.h5.losses && fail "prompts count in the loss"
exit 0
