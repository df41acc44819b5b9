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

# Two with one prefix: the second is told, and the first goes on as if it had been alone.
"$T3D_BIN" tokenize in -o locked --model bpe-train.h5 --threads 1 > /dev/null 2>&1 &
job=$!
for _ in $(seq 2000); do
  [[ -s locked.parts.lock && -d locked.parts ]] && break
  sleep 0.01
done
kill -STOP $job
[[ -s locked.parts.lock && -d locked.parts ]] || fail "no lock while texts are tokenized"
run 1 tokenize text.txt -o locked --valid 0.5
expect_status 69
expect_text "process $job on .* is writing token files of this name (locked)"
run 2 tokenize text.txt -o locked --valid 0.5
expect_status 69
[[ -d locked.parts && ! -e locked-train.h5 && ! -e locked-valid.h5 ]] || fail "the second has touched the files of the first"
kill -CONT $job
wait $job || fail "the first ended with $?"
cmp bpe-train.h5 locked-train.h5 || fail "the second has changed the tokens of the first"
[[ ! -e locked-valid.h5 && ! -e locked.parts.lock && ! -e locked.parts ]] || fail "left: $(ls -d locked*)"
echo "process 1 on elsewhere" > locked.parts.lock # a killed one's
run 1 tokenize in -o locked --model bpe-train.h5
expect_status 0
[[ ! -e locked.parts.lock ]] || fail "the lock is left"
# A file of somebody else that has this name stays as it is, also behind a link.
echo '{ "nodes": {} }' > locked.parts.lock
ln -sf locked.parts.lock linked.parts.lock
for name in locked linked; do
  "$T3D_BIN" tokenize text.txt -o $name > out.log 2>&1
  status=$?
  [[ $status == 78 || $status == 74 ]] || fail "$name: $status"
  [[ $(cat locked.parts.lock) == '{ "nodes": {} }' ]] || fail "$name.parts.lock was written"
done
rm locked.parts.lock linked.parts.lock

# Of no text there are no token files; a vocabulary larger than the text gives is said to be smaller.
: > nothing.txt
echo '{"text": ""}' > nothing.jsonl
for inputs in nothing.txt nothing.jsonl "nothing.txt nothing.jsonl"; do
  run 2 tokenize $inputs -o nothing --valid 0.1
  expect_status 78
  expect_text "there is no text in nothing.* no token files are written"
  [[ ! -e nothing-train.h5 && ! -e nothing-valid.h5 && ! -e nothing.parts && ! -e nothing.parts.lock ]] || fail "left: $(ls -d nothing*)"
done
head -n 50 text.txt > small.txt
run 1 tokenize small.txt -o small --kind bpe --vocab 9000
expect_status 0
expect_text "warning: the text gives a vocabulary of [3-9][0-9][0-9] ids alone, not of --vocab 9,000"
run 1 inspect small-train.h5
expect_text "sentencepiece (bpe)"
run 1 tokenize small.txt -o small --model bpe-train.h5 --kind unigram
expect_status 64
expect_text "--kind excludes --model"
run 1 tokenize small.txt -o small --model bpe-train.h5 --vocab 300
expect_status 64

# A byte-order mark is no text.
for kind in bytes bpe; do
  { printf '\xef\xbb\xbf'; cat small.txt; } > marked.txt
  for lines in "" --document-lines; do
    run 1 tokenize small.txt -o unmarked --kind $kind --vocab 300 $lines
    run 1 tokenize marked.txt -o marked --kind $kind --vocab 300 $lines
    expect_status 0
    run 1 inspect marked-train.h5 --verify
    sed 's/marked/unmarked/g' screen.log > marked.said # as many tokens, ids and bytes
    run 1 inspect unmarked-train.h5 --verify
    diff <(sed 's/small.txt/unmarked.txt/' screen.log) marked.said || fail "the mark of marked.txt became tokens"
  done
done

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
