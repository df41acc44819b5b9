# Begin and end of a text as the files of a model say them: in by import and init.from, kept in token file and
# checkpoint, used by generate, out again by export.
. "$T3D_SOURCE/tests/support/job.sh"
models=$T3D_SOURCE/tests/reference/hf
# A model that was taught to chat: its texts end with 2, though the token 0 has the usual name of an end.
cp -r "$models/llama" chat
python3 - <<'PY'
import json
words = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<unk>", "the", "king", "sings"]
added = [{"id": n, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for n, word in enumerate(words[:3])]
json.dump({"added_tokens": added, "pre_tokenizer": {"type": "WhitespaceSplit"},
           "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {word: n for n, word in enumerate(words)}}},
          open("chat/tokenizer.json", "w"))
json.dump({"eos_token_id": [2, 0], "pad_token_id": 0}, open("chat/generation_config.json", "w"))
json.dump({"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}, "add_bos_token": True},
          open("chat/tokenizer_config.json", "w"))
PY
says() { # FOLDER: of generation_config.json, config.json, tokenizer_config.json
  python3 - "$1" <<'PY'
import json, sys
read = lambda name: json.load(open(f"{sys.argv[1]}/{name}.json"))
made, config, words = read("generation_config"), read("config"), read("tokenizer_config")
print(made.get("eos_token_id"), config.get("eos_token_id"), made.get("bos_token_id"), words.get("eos_token"), words.get("bos_token"),
      words.get("add_bos_token"), words.get("model_input_names"))
PY
}
rest="1 <|im_end|> <|im_start|> True ['input_ids', 'attention_mask']"
exported() { # FOLDER ENDS
  [[ $(says "$1") == "$2 $2 $rest" ]] || fail "$1 says $(says "$1")"
}
run 1 import chat -o in
expect_status 0
expect_text "<|im_end|>"  # the note that the usual name would be another one
run 1 export in -o out
expect_status 0
exported out "[2, 0]"
run 1 export in -o out-one --eos "<|im_end|>"
expect_status 0
exported out-one 2
run 1 export in -o none --eos "</s>"
expect_status 78

# Fine-tuning: documents end as the model's do, and what it had goes out again.
awk 'BEGIN { for (n = 0; n < 600; ++n) print "{\"text\": \"the king sings\"}" }' > songs.jsonl
run 2 tokenize songs.jsonl -o songs --model chat
expect_status 0
run 1 inspect songs-train.h5
expect_text "end is id 2"
make_input
tune=(input.toml --set "data.train='songs-train.h5'" --set data.format=auto --set model.dropout=0.1 --set init.from=hf:chat)
sed -i '/^\[model\]/,/^\[data\]/{/^\[model\]/!{/^\[data\]/!d}}' input.toml
sed -i 's/^\[model\]/&\ncontext = 32/' input.toml
run 2 "${tune[@]}" -d tuned --set run.steps=2
expect_status 0
expect_text "samples of 32 tokens go across the ends of documents (600, of 4 tokens on average)"
run 1 export tuned -o tuned-out
expect_status 0
exported tuned-out "[2, 0]"
run 1 "${tune[@]}" -d tuned --set run.steps=80 --set optimizer.lr=0.01
expect_status 0
run 1 export tuned -o tuned-again
expect_status 0
exported tuned-again "[2, 0]"
run 1 generate tuned --prompt "the king" --tokens 20 --greedy --json
expect_text '"text":"[^"]*sings","tokens":1,"end":"eos"'
expect_text " 3 tokens read"  # the begin of a text before it
run 1 generate tuned --prompt "the king" --tokens 20 --greedy --json --no-document-begin
expect_text " 2 tokens read"
run 1 generate tuned --prompt "the king" --tokens 20 --greedy --json --ignore-eos --stop "<|im_end|>"
expect_text '"text":"[^"]*sings",.*"end":"stop"'

# The second one of several ends a text, too.
run 1 export tuned -o two --eos "<|endoftext|>" --eos 2
expect_status 0
run 1 import two -o two-in
expect_status 0
run 1 generate two-in --prompt "the king" --tokens 20 --greedy --json
expect_text '"text":"[^"]*sings","tokens":1,"end":"eos"'

# An end that only the model has, whose tokenizer is a shorter one (of 7 ids; the model has 256).
cp -r chat longer
python3 - <<'PY'
import json
json.dump({"eos_token_id": list(range(7, 256))}, open("longer/generation_config.json", "w"))
PY
run 1 import longer -o longer-in
expect_status 0
run 1 generate longer-in --prompt "the king" --tokens 20 --seed 1 --json
expect_status 0
expect_text '"end":"eos"'
run 1 export longer-in -o longer-out
expect_status 0

# The loss with every digit, for programs.
run 1 eval tuned songs-train.h5 --sequences 4
expect_status 0
short=$(sed -n 's/^loss \([0-9.]*\).*/\1/p' screen.log)
run 2 eval tuned songs-train.h5 --sequences 4 --json
expect_status 0
python3 - "$short" <<'PY' || fail "eval --json says $(cat screen.log)"
import json, sys
result = json.load(open("screen.log"))
assert result["sequences"] == 4 and result["context"] == 32 and result["bits_per_byte"] > 0
assert abs(result["loss"] - float(sys.argv[1])) < 2e-5 and len(repr(result["loss"])) > 10
PY

# What cannot be: a begin that there is none of, prompts that are no text.
run 1 import "$models/llama" -o bare
run 1 generate bare --prompt "a" --tokens 1 --document-begin
expect_status 78
run 1 generate bare --prompt $'\xff' --tokens 1
expect_status 78

# A sliding window is no matter for contexts that it does not reach into.
cp -r "$models/mistral" window
sed -i 's/"sliding_window": null/"sliding_window": 24/' window/config.json
run 1 import window -o w
expect_status 0
expect_text "context 24"
run 1 import window -o w-long --context 25
expect_status 78
run 1 input.toml -d w-run --set "data.train='$models/text.bin'" --set init.from=hf:window --set model.context=25 --set run.steps=1
expect_status 78
run 1 input.toml -d w-run --set "data.train='$models/text.bin'" --set init.from=hf:window --set model.context=24 --set run.steps=1
expect_status 0
exit 0
