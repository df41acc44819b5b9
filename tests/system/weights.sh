# Small models of Hugging Face's families (tests/reference/make_hf_cases.py) come in and go out: loss and text are those
# of the family's own code on any cuboid, export gives back every bit, training goes as PyTorch's does from the same
# weights, and what does not fit is refused.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
models=$T3D_SOURCE/tests/reference/hf
equal() { python3 "$T3D_SOURCE/tests/support/safetensors_equal.py" "$@" > equal.log || { cat equal.log; fail "export of $1"; }; }
expected() { python3 -c "import json, sys; print(json.load(open('$models/$1/expected.json'))['$2'])"; }
near() { awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { d = a - b; exit !(d < most && d > -most) }' || fail "$4: $1, expected $2"; }
bytes=(--set 'data.format="bytes"')
declare -A dtype=([gpt2]=fp32 [llama]=bf16 [llama_bias]=fp16 [mistral]=bf16 [qwen2]=fp32 [qwen3]=bf16)
declare -A cuboid=([gpt2]="[2,2,2]" [llama]="[3,2,2]" [llama_bias]="[1,2,2]" [mistral]="[2,2,2]" [qwen2]="[2,1,3]" [qwen3]="[1,2,3]")
declare -A widths=([gpt2]="tokens=[1,3]" [llama]="tokens=[1,0,2]" [llama_bias]="outputs=[1,0]" [mistral]="contractions=[1,5]"
  [qwen2]="contractions=[3,1,2]" [qwen3]="outputs=[1,3]")

for name in gpt2 llama llama_bias mistral qwen2 qwen3; do
  run 1 import "$models/$name" -o "$name" --context 32
  expect_status 0
  loss=$(expected $name loss)
  for ranks in one all; do
    options=(--set "mesh.cuboid=${cuboid[$name]}" --set "mesh.${widths[$name]}")
    count=$(($(tr -d '[]' <<< "${cuboid[$name]}" | tr ',' '*')))
    [[ $ranks == one ]] && count=1 options=()
    run $count eval $name "$models/text.bin" "${bytes[@]}" "${options[@]}"
    expect_status 0
    near "$(sed -n 's/^loss \([0-9.]*\).*/\1/p' screen.log)" "$loss" 1e-5 "$name on $count ranks"
  done
done

# Out again: the same bits, and a config.json that says the same model.
for name in gpt2 llama llama_bias mistral qwen2 qwen3; do
  run 1 import "$models/$name" -o "$name-whole"
  expect_status 0
  run 1 export "$name-whole" -o "$name-out" --dtype ${dtype[$name]}
  expect_status 0
  equal "$models/$name/model.safetensors" "$name-out/model.safetensors"
  run 1 import "$name-out" -o "$name-again"
  expect_status 0
  for copy in whole again; do
    run 1 inspect $name-$copy/step-00000000 --all
    sed -n '/^\[model\]/,$p' screen.log | grep = > $copy.txt
  done
  cmp -s whole.txt again.txt || { diff whole.txt again.txt; fail "$name: config.json says another model"; }
done

# The text that the family's own code writes, token for token.
prompt=$(head -c 8 "$models/text.bin")
for name in gpt2 llama llama_bias mistral qwen2 qwen3; do
  ranks=1
  [[ $name != qwen3 ]] || ranks=4
  run $ranks generate $name-whole --prompt "$prompt" --tokens 64 --greedy
  expect_status 0
  python3 - "$models/$name/expected.json" <<'PY' || fail "$name writes another text"
import json, sys
want = bytes(json.load(open(sys.argv[1]))["greedy"])
sys.exit(open("screen.log", "rb").read()[8:72] != want)
PY
done

# A run begins from them; its first loss is that of eval, and 20 steps go as PyTorch's.
cat > tune.toml <<TOML
version = 1
[run]
steps = 20
[model]
context = 32
[data]
train = "$models/text.bin"
format = "bytes"
shuffle = false
[batch]
sequences = 8
[optimizer]
lr = 1e-3
[schedule]
kind = "constant"
[hetero]
speeds = "equal"
[balance]
kind = "off"
TOML
losses_are() { # NAME FOLDER MOST
  python3 - "$models/$1/expected.json" "$2/log.jsonl" "$3" <<'PY' || fail "training of $1"
import json, sys
want = json.load(open(sys.argv[1]))["training"]
got = [json.loads(line)["loss"] for line in open(sys.argv[2]) if '"loss"' in line]
worst = max(abs(a - b) / a for a, b in zip(want, got))
print(f"{len(got)} steps, worst difference {worst:.1e}")
sys.exit(not (len(got) == len(want) and worst < float(sys.argv[3])))
PY
}
for name in gpt2 llama qwen2 qwen3; do
  run 1 tune.toml -d "64-$name" --set "init.from=hf:$models/$name" --set 'precision.compute="fp64"'
  expect_status 0
  losses_are $name "64-$name" 1e-9
  count=$(($(tr -d '[]' <<< "${cuboid[$name]}" | tr ',' '*')))
  run $count tune.toml -d "32-$name" --set "init.from=hf:$models/$name" --set "mesh.cuboid=${cuboid[$name]}"
  expect_status 0
  losses_are $name "32-$name" 1e-4
done
# From a checkpoint of ours: a run's, or an imported one; more tokens when asked.
run 2 tune.toml -d from-run --set init.from=32-llama --set run.steps=1
expect_status 0
run 1 tune.toml -d from-import --set init.from=llama --set run.steps=1
expect_status 0
[[ $(grep -o '"loss":[0-9.]*' from-import/log.jsonl | head -n 1 | cut -c 8-14) == "$(grep -o '"loss":[0-9.]*' 32-llama/log.jsonl |
  head -n 1 | cut -c 8-14)" ]] || fail "an imported checkpoint begins with another loss than its model"
run 1 tune.toml -d grown --set init.from=hf:$models/llama --set model.vocab=300 --set run.steps=1
expect_status 78
grep -q "wte.weight\|embed_tokens.weight is \[256, 32\], \[300, 32\] wanted" out.log || fail "no word of the vocabulary"
run 1 tune.toml -d grown --set init.from=hf:$models/llama --set model.vocab=300 --set init.grow_vocab=true --set run.steps=1
expect_status 0

# A tokenizer goes along: in, beside the checkpoint, and out again.
cp -r "$models/llama" spoken
cp "$T3D_SOURCE/tests/reference/tokenizers/gpt2.json" spoken/tokenizer.json
run 1 import spoken -o spoken-in --context 32
expect_status 78
grep -q -- "--vocab [0-9]* grows" out.log || fail "a tokenizer with more ids than the model"
run 1 import spoken -o spoken-in --context 32 --vocab 4000
expect_status 0
run 1 generate spoken-in --prompt "a ship" --tokens 5 --greedy
expect_status 0
run 1 export spoken-in -o spoken-out
expect_status 0
cmp "$T3D_SOURCE/tests/reference/tokenizers/gpt2.json" spoken-out/tokenizer.json || fail "the tokenizer came out another"
truncate -s 100 spoken/tokenizer.json
run 1 import spoken -o spoken-again
expect_status 74
run 1 import spoken -o spoken-again --no-tokenizer
expect_status 0

# Two at once into one folder: one is whole, the other is refused, and nothing else stays.
for n in 1 2; do "$T3D_BIN" export llama -o raced > raced$n.log 2>&1 & done
wait
[[ -e raced/config.json && $(ls -d raced* | wc -l) == 3 ]] || fail "a race left $(ls -d raced*)"

# Inputs with more in them than a model: their runs go out and are begun from all the same.
run 2 tune.toml -d rich --set "init.from=hf:$models/llama" --set run.steps=4 --set schedule.warmup_steps=2 --set batch.micro=2 \
  --set mesh.replicas=2 --set 'aggregate.method="adasum"' --set 'model.preset="llama-160m"'
expect_status 0
grep -q "^model.rope_base = 500$" rich/plan.toml || fail "a preset won over the weights' own model"
run 1 export rich -o rich-out
expect_status 0
grep -q '"max_position_embeddings": 128' rich-out/config.json || fail "the export forgot how long contexts may be"
run 1 tune.toml -d of-rich --set init.from=rich --set run.steps=1
expect_status 0

# A run that goes on needs its source no more.
cp -r "$models/qwen3" source
run 1 tune.toml -d lonely --set init.from=hf:source --set run.steps=4
expect_status 0
rm -r source
run 1 tune.toml -d lonely --set init.from=hf:source --set run.steps=6
expect_status 0
grep -q "resumed from" out.log || fail "it began anew"
refused_source() { # WORDS options...: training from a changed copy of a model
  local words=$1
  shift
  run 1 tune.toml -d changed --set init.from=hf:source "$@"
  expect_status 78
  grep -q -- "$words" out.log || fail "no word of \"$words\""
}
cp -r "$models/llama" source
refused_source "model.rope_base: 500 -> 10000" --set model.rope_base=10000
refused_source "model.tied_embeddings: false -> true" --set model.tied_embeddings=true
refused_source "model.layers: 2 -> 1" --set model.layers=1
python3 - <<'PY'
import json
config = json.load(open("source/config.json"))
json.dump({**config, "hidden_act": "gelu"}, open("source/config.json", "w"))
PY
refused_source 'hidden_act = "gelu" is not computed' --set model.layers=2 --set model.hidden=32 --set model.heads=4 \
  --set model.kv_heads=2 --set model.ffn=48 --set model.vocab=256 --set 'model.norm="rmsnorm"' --set 'model.activation="swiglu"' \
  --set 'model.position="rope"' --set model.bias=false --set model.tied_embeddings=false
[[ ! -e changed ]] || fail "refused starts have left a folder"

# What cannot be: clear answers, and nothing left behind.
refused() { # STATUS WORDS args...
  local code=$1 words=$2
  shift 2
  run 1 "$@"
  expect_status "$code"
  grep -q -- "$words" out.log || fail "no word of \"$words\": $*"
}
refused 64 "qwen2-out is there already" export qwen2 -o qwen2-out
refused 66 "there is no nowhere" import nowhere -o x
refused 64 "llama is there already" import "$models/llama" -o llama
refused 64 "export takes --set data.tokenizer" export llama -o y --set model.context=3
refused 78 "holds weights alone" tune.toml -r llama/step-00000000 -d y --set init.from=llama
# What cannot be begun from leaves no folder behind.
refused 78 "there is no nowhere" tune.toml -d left --set init.from=nowhere
refused 78 "model.rope_base: 500 -> 7" tune.toml -d left --set init.from=llama --set model.rope_base=7
[[ ! -e left ]] || fail "refused starts have left a folder"
mkdir pickled
cp "$models/gpt2/config.json" pickled
touch pickled/pytorch_model.bin
refused 66 "save_pretrained" import pickled -o x
cp -r "$models/qwen3" short
truncate -s -100 short/model.safetensors
refused 74 "cut short" import short -o x
python3 - "$models" <<'PY'
import json, shutil, sys
for name, key, value in [("gelu", "activation_function", "gelu"), ("deep", "n_layer", 3), ("wide", "n_inner", 100),
                         ("none", "n_head", 0), ("word", "n_layer", "two"), ("gone", "n_embd", None)]:
    shutil.copytree(sys.argv[1] + "/gpt2", name)
    config = json.load(open(name + "/config.json"))
    json.dump({**config, key: value}, open(name + "/config.json", "w"))
PY
refused 78 'activation_function = "gelu" is not computed' import gelu -o x
refused 78 "transformer.h.2.attn.c_attn.weight" import deep -o x
refused 78 "is \[32, 128\], \[32, 100\] wanted" import wide -o x
# Wrong values are wrong input; what is no JSON at all cannot be read.
refused 78 "none/config.json: n_head is 0, not a number from 1 to 1,000,000" import none -o x
refused 78 'word/config.json: n_layer is "two", not a number' import word -o x
refused 78 "gone/config.json has no n_embd" import gone -o x
run 1 tune.toml -d refused --set init.from=hf:none
expect_status 78
expect_text "none/config.json: n_head is 0"
cp -r "$models/gpt2" torn
truncate -s 20 torn/config.json
refused 74 "torn/config.json is not a JSON object" import torn -o x
[[ ! -e x ]] || fail "a refused import left $(ls -d x)"
run 2 tune.toml -d odd --set model.layers=1 --set model.hidden=16 --set model.heads=2 --set run.steps=1 --set model.vocab=256 \
  --set 'model.norm="rmsnorm"' --set 'model.activation="gelu"' --set 'model.position="rope"'
expect_status 0
refused 78 'model.activation = "gelu"' export odd -o odd-out
[[ ! -e odd-out ]] || fail "a refused export left a folder"
exit 0
