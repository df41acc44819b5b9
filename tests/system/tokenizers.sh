# One tokenizer for a run, its texts and its checkpoints: another one is refused, by name, and the
# run's own file is written once. Every lineage keeps its own.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
run 1 tokenize text.txt -o a --kind bpe --vocab 300 --valid 0.1
run 1 tokenize text.txt -o b --kind unigram --vocab 290 --valid 0.1
tokens=(input.toml --set data.format=auto --set model.vocab=300 --set run.steps=4)
train_a=("${tokens[@]}" --set "data.train='a-train.h5'")
train_b=("${tokens[@]}" --set "data.train='b-train.h5'")
run 1 "${train_a[@]}" -d r --set "data.valid='a-valid.h5'"
expect_status 0
expect_text "bits per byte"
model=$(ls r/ckpt/tokenizer-*.model)
kept() { stat -c '%n %i %y %s' r/ckpt/tokenizer-*.model; md5sum < "$model"; }
kept > before.txt

refused() { # TEXT TEXT: 78 with both, and the tokenizer of the run as it was
  expect_status 78
  expect_text "not the same tokenizer"
  expect_text "$1"
  expect_text "$2"
  kept | cmp -s - before.txt || fail "the run's tokenizer was touched"
}
run 1 "${train_b[@]}" -d r --set run.steps=8
refused "r/ckpt/step-00000004 has" "b-train.h5: "
run 1 "${train_a[@]}" -d x --set "data.valid='b-valid.h5'"
refused "a-train.h5: " "b-valid.h5: "
run 1 "${train_a[@]}" -d x --set "data.tokenizer='b-train.h5'"
refused "a-train.h5: " "b-train.h5 has"
run 2 eval r b-valid.h5
refused "r/ckpt/step-00000004 has" "b-valid.h5: "
run 1 eval r text.txt
refused "r/ckpt/step-00000004 has" "text.txt: "
run 1 generate r --tokens 2 --set "data.tokenizer='b-train.h5'"
refused "r/ckpt/step-00000004 has" "b-train.h5 has"
# Refused for another reason, and accepted: the file stays too.
run 1 "${train_b[@]}" -d r --set model.hidden=64
expect_status 78
kept | cmp -s - before.txt || fail "a refused continuation touched the tokenizer"
run 1 "${train_a[@]}" -d r --set run.steps=8
expect_status 0
kept | cmp -s - before.txt || fail "a continuation touched the tokenizer"
run 1 eval r a-valid.h5
expect_status 0
expect_text "bits per byte"
run 1 generate r --tokens 2
expect_status 0

# Out as a model of Hugging Face's, with a tokenizer.json; and in again as the tokenizer of the same texts.
run 1 export r -o out
expect_status 0
[[ -s out/tokenizer.model && -s out/tokenizer.json && -s out/tokenizer_config.json ]] || fail "the export has $(ls out)"
grep -q '"eos_token": "<eos>"' out/tokenizer_config.json || fail "no word of the end of a document"
run 1 "${train_a[@]}" -d tuned --set init.from=hf:out --set run.steps=1
expect_status 0
run 1 tokenize text.txt -o by-json --model out/tokenizer.json
expect_status 0
run 1 tokenize text.txt -o by-model --model out
expect_status 0
run 1 eval r by-model-train.h5
expect_status 0

# Another model's file in the run folder: no garbage is written.
cp "$model" model.keep
run 1 "${train_b[@]}" -d s --set run.steps=1
expect_status 0
cp s/ckpt/tokenizer-*.model "$model"
run 1 generate r --tokens 2
expect_status 78
expect_text "$model has"
cp model.keep "$model"

# A new lineage with another tokenizer in the same folder: every checkpoint finds its own.
cp -r r both
run 1 "${train_b[@]}" -d both -r never
expect_status 0
for file in ?-train.h5; do mv "$file" "hidden-$file"; done
for step in step-00000004 step-00000008 step-00000004.lineage-1; do
  run 1 generate both/ckpt/$step --tokens 2
  expect_status 0
done
# Runs of earlier versions kept one file in the run folder.
mv r/ckpt/tokenizer-*.model r/tokenizer.model
run 1 generate r --tokens 2
expect_status 0
mv r/tokenizer.model "$model"
for file in hidden-*; do mv "$file" "${file#hidden-}"; done

# Into a new folder: the tokenizer comes along, also where the text does not name it.
python3 -c "open('ids', 'wb').write(b''.join(bytes([c, 0]) for c in open('text.txt', 'rb').read()))"
run 1 "${train_a[@]}" -d moved -r r/ckpt/step-00000004/ --set run.steps=5
expect_status 0
cmp -s "${model/#r/moved}" "$model" || fail "the tokenizer did not come along"
run 1 "${tokens[@]}" -d again -r moved/ckpt/step-00000005 --set "data.train='ids'" --set data.format=u16 --set run.steps=6
expect_status 0
cmp -s "${model/#r/again}" "$model" || fail "the tokenizer did not come along with ids"
run 1 generate again --tokens 2
expect_status 0

# Ids of which nobody says what they mean: it works, nothing is compared, one note says so, and there
# are no bits per byte. The same holds for checkpoints of earlier versions, which have no hash.
run 1 "${tokens[@]}" -d u --set "data.train='ids'" --set data.format=u16
expect_status 0
(($(grep -c "the tokenizer of .*ids.* is not known" screen.log) == 1)) || fail "not one note"
run 1 eval u a-valid.h5 --set data.format=auto
expect_status 0
(($(grep -c "tokenizer of u/ckpt/step-00000004 is not known" out.log) == 1)) || fail "not one note"
! grep -q "bits per byte" out.log || fail "bits per byte of an unknown tokenizer"
run 1 "${train_a[@]}" -d u --set run.steps=6
expect_status 0
(($(grep -c "tokenizer of u/ckpt/step-00000004 is not known" screen.log) == 1)) || fail "not one note"
# With the tokenizer named, it is kept and compared.
run 1 "${tokens[@]}" -d n --set "data.train='ids'" --set data.format=u16 --set "data.tokenizer='$model'"
expect_status 0
cmp -s "${model/#r/n}" "$model" || fail "the named tokenizer is not kept"
run 1 eval n b-valid.h5 --set data.format=auto
expect_status 78

# A tokenizer.json and a file of ranks go the same way: kept beside the checkpoints as they are, found again.
{ echo "# pattern gpt2"
  python3 -c "import base64
for n, token in enumerate([bytes([b]) for b in range(256)] + [b'th', b'he', b'the', b' the', b'in', b'ing']):
    print(base64.b64encode(token).decode(), n)"; } > ranks
cp "$T3D_SOURCE/tests/reference/tokenizers/llama3.json" tokenizer.json
for own in tokenizer.json ranks; do
  run 1 tokenize text.txt -o own --model $own --valid 0.1
  expect_status 0
  run 2 input.toml --set data.format=auto --set model.vocab=720 --set run.steps=3 -d own-$own \
    --set "data.train='own-train.h5'" --set "data.valid='own-valid.h5'"
  expect_status 0
  expect_text "bits per byte"
  cmp -s own-$own/ckpt/tokenizer-*.model $own || fail "$own is not kept"
  mv own-train.h5 hidden.h5
  run 1 generate own-$own --tokens 3 --prompt "the king"
  expect_status 0
  run 1 eval own-$own own-valid.h5
  expect_status 0
  run 1 eval own-$own a-valid.h5
  expect_status 78
  expect_text "not the same tokenizer"
  mv hidden.h5 own-train.h5
done
sed 's/"BPE"/"BQE"/' tokenizer.json > broken.json
run 1 tokenize text.txt -o broken --model broken.json
expect_status 74
expect_text 'broken.json: model: models of type "BQE" are not known here'
