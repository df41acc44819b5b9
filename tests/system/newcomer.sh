# What somebody meets who uses the program for the first time: faults say where, what and what to write.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
bad() { # STATUS TEXT args...
  local want=$1 text=$2
  shift 2
  run 1 "$@"
  expect_status "$want"
  expect_text "$text"
}
# Data files that are not there, with all other faults.
sed 's/text.txt/txet.txt/' input.toml > lost.toml
bad 66 'lost.toml:[0-9]*:[0-9]*: data.train: txet.txt does not exist; did you mean text.txt?' lost.toml
bad 78 'data.train: txet.txt' lost.toml --set data.valid=none.h5 --set model.heads=0
expect_text 'set data.valid: data.valid: none.h5 does not exist'
expect_text 'model.heads cannot be 0'

# Other programs' names, and a place for them.
for pair in optimizer.learning_rate:optimizer.lr batch.batch_size:batch.sequences model.n_layer:model.layers \
            model.hidden_size:model.hidden run.max_steps:run.steps model.block_size:model.context; do
  bad 78 "there is no key ${pair%:*}; did you mean ${pair#*:}?" input.toml --set "${pair%:*}=1"
done
bad 78 'did you mean optimizer.lr?' input.toml --set learning_rate=1
bad 78 '"cuda"' input.toml --set mesh.device=gpu
if grep -q 'did you mean "cpu"' out.log; then fail "gpu is taken for a slip of cpu"; fi

# init.from: what the hub is, and no faults that follow from it.
sed '/^layers\|^hidden\|^heads\|^context/d' input.toml > fine.toml
bad 78 "transformer3d: --set init.from: there is no org/model; this program downloads nothing" fine.toml --set init.from=hf:org/model
bad 78 '"hf:" names no folder' fine.toml --set init.from=hf:
bad 78 "init.from: text.txt is a file, and a checkpoint is a folder" fine.toml --set init.from=text.txt
{ cat fine.toml; printf '[init]\nfrom = "hf:org/model"\n'; } > hub.toml
bad 78 "hub.toml:[0-9:]* init.from: there is no org/model" hub.toml
if grep -q "is missing" out.log; then fail "faults that follow from init.from are told"; fi

# Numbers that are none, and files of another kind.
bad 64 "dry-run needs a number of ranks from 1 to [0-9]*, not many" input.toml -n many
bad 78 "input.toml is no job plan" simulate input.toml
if grep -q "json.exception" out.log; then fail "an exception of a library is shown"; fi
yes '{"body": "hello you"}' | head -n 20 > body.jsonl
bad 78 'there is no field "text"; --field NAME' tokenize body.jsonl -o x --kind bpe --vocab 300

# How often the text is read; how to go on.
bad 0 "tokens in all 5.12k, corpus 20.[0-9]k: 0.25[0-9]* epochs" input.toml -n 1
bad 0 "tokens in all 5.12k, corpus 20.[0-9]k: 0.25[0-9]* epochs" input.toml
# The first line says which program this is; what the planner compared, only who asks for it.
rm -rf runs/t
run 2 input.toml --set balance.kind=model --set mesh.replicas=auto --set run.steps=2
expect_status 0
head -n 1 screen.log | grep -q "^transformer3d .* mesh .* plan " || fail "the banner is not first: $(head -n 1 screen.log)"
few=$(grep -c "^plan: " out.log)
run 2 input.toml --set balance.kind=model --set mesh.replicas=auto --set run.steps=2 -d verbose -v
expect_status 0
(($(grep -c "^plan: " out.log) > few && few == 1)) || fail "$few plans are listed, and no more with -v"
bad 64 "excludes" input.toml -q -v
rm -rf runs/t
bad 0 "tokens in all 5.12k, corpus 20.[0-9]k: 0.25[0-9]* epochs" input.toml
if grep -q "Muennighoff" out.log; then fail "a quarter of an epoch is warned of"; fi
bad 0 "transformer3d input.toml --set run.steps=40" input.toml
bad 0 "warning: the run reads its text 12.[0-9]* times" input.toml --set run.steps=1000 -n 1
expect_text "Muennighoff"

# A run folder where a checkpoint may be named; a run that was stopped; temperature 0.
bad 0 "resumed from runs/t/ckpt/step-00000020" input.toml -r runs/t -d other --set run.steps=22
bad 75 "to continue, on any number of ranks: transformer3d input.toml --set run.steps=1000000 --set run.hours=0.0005" \
  input.toml --set run.steps=1000000 --set run.hours=0.0005
run 1 generate runs/t --prompt "the " --tokens 9 --greedy
expect_status 0
grep -v "^transformer3d:" out.log > greedy.txt
run 1 generate runs/t --prompt "the " --tokens 9 --temperature 0
expect_status 0
grep -v "^transformer3d:" out.log | cmp - greedy.txt || fail "temperature 0 is not greedy"

# A wrong tokenizer: the command that makes the right ids.
run 1 tokenize text.txt -o sub --kind bpe --vocab 300
expect_status 0
bad 78 "transformer3d tokenize TEXT -o NAME --kind bytes" eval runs/t sub-train.h5 --set data.format=auto
