#!/usr/bin/env python3
"""Models that were taught to chat, in and out: the same ids, ends and flags in the installed transformers, and here.

    bench/special_tokens.py --program build/cpu/transformer3d [--work FOLDER] [--page FILE]

Five folders with tokenizers of tests/reference/tokenizers and random weights, each with other files about its special
tokens, and a run with a tokenizer of `tokenize --kind bpe`. Ends with 1 when anything differs. --page appends a table.
Needs torch, transformers, sentencepiece, and build/cpu/bench/t3d_bench_tokenizers (or $T3D_BENCH).
bench/special_tokens.sh runs it with transformers 4.57 and 5.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import sentencepiece
import tokenizer_export
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENIZERS = ROOT / "tests/reference/tokenizers"
ODD = ["", " ", "a  b", "stone\nbread", "tab\there", "The End. 12345", "sch\u00f6n \u65e5\u672c", "it's <b>"]
FAST = "PreTrainedTokenizerFast"
# Version 5 takes a space from the begin of a text for LlamaTokenizer, also in the folder that came in.
KNOWN = {"sentencepiece": ODD.count(" ")} if transformers.__version__.startswith("5.") else {}


def sentencepiece_folder(folder):
    """As Llama 2 came: tokenizer.model alone."""
    text = folder / "text"
    text.write_text((TOKENIZERS / "text.txt").read_text())
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "tokenizer"), vocab_size=900, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, hard_vocab_limit=False,
        character_coverage=0.98, minloglevel=2)
    (folder / "tokenizer.vocab").unlink()
    text.unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model")).vocab_size()


def json_folder(folder, name, more):
    """A tokenizer.json with further special tokens behind its own; gives their ids."""
    file = json.loads((TOKENIZERS / f"{name}.json").read_text())
    ids = {token["content"]: token["id"] for token in file["added_tokens"]} | file["model"]["vocab"]
    end = max(ids.values()) + 1
    for word in more:
        if word in ids:
            continue
        file["added_tokens"].append(dict(id=end, content=word, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True))
        ids[word] = end
        end += 1
    (folder / "tokenizer.json").write_text(json.dumps(file, ensure_ascii=False))
    return ids, end


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content, indent=2))


def model_of(folder, vocab, **ids):
    torch.manual_seed(3)
    config = transformers.LlamaConfig(vocab_size=vocab, hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
                                      intermediate_size=48, max_position_embeddings=256, **ids)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def chat_folders(work):
    """Name and folder of each."""
    def new(name):
        folder = work / name
        folder.mkdir()
        return folder

    folder = new("chatml")  # the end has not the usual name, and config.json alone says it
    ids, vocab = json_folder(folder, "gpt2", ["<|im_start|>", "<|im_end|>"])
    model_of(folder, vocab, bos_token_id=ids["<|im_start|>"], eos_token_id=ids["<|im_end|>"], pad_token_id=ids["<|im_end|>"])
    write(folder, "tokenizer_config.json", dict(tokenizer_class=FAST, bos_token="<|im_start|>", eos_token="<|im_end|>",
                                                pad_token="<|im_end|>", model_input_names=["input_ids", "attention_mask"]))
    yield folder

    folder = new("several-ends")  # as Llama 3: a list, and a post-processor that puts the begin
    ids, vocab = json_folder(folder, "llama3", ["<|begin_of_text|>", "<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"])
    ends = [ids["<|end_of_text|>"], ids["<|eom_id|>"], ids["<|eot_id|>"]]
    model_of(folder, vocab, bos_token_id=ids["<|begin_of_text|>"], eos_token_id=ends)
    write(folder, "generation_config.json", dict(bos_token_id=ids["<|begin_of_text|>"], eos_token_id=ends))
    write(folder, "tokenizer_config.json", dict(tokenizer_class=FAST, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>",
                                                model_input_names=["input_ids", "attention_mask"]))
    yield folder

    folder = new("generation-wins")  # as Qwen 2: generation_config.json over config.json, no begin
    ids, vocab = json_folder(folder, "qwen2", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    model_of(folder, vocab, bos_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|im_end|>"])
    write(folder, "generation_config.json", dict(bos_token_id=ids["<|endoftext|>"], pad_token_id=ids["<|endoftext|>"],
                                                 eos_token_id=[ids["<|im_end|>"], ids["<|endoftext|>"]]))
    write(folder, "tokenizer_config.json", dict(tokenizer_class=FAST, add_bos_token=False, eos_token="<|im_end|>",
                                                pad_token="<|endoftext|>", model_input_names=["input_ids", "attention_mask"]))
    yield folder

    folder = new("no-config")  # as a distilled model: generation_config.json alone
    ids, vocab = json_folder(folder, "mistral", ["<s>", "</s>", "[/INST]"])
    model_of(folder, vocab, bos_token_id=None, eos_token_id=None)
    write(folder, "generation_config.json", dict(bos_token_id=ids["<s>"], eos_token_id=ids["</s>"]))
    write(folder, "tokenizer_config.json", dict(tokenizer_class=FAST, bos_token="<s>", eos_token="</s>",
                                                model_input_names=["input_ids", "attention_mask"]))
    yield folder

    folder = new("sentencepiece")  # tokenizer.model alone
    vocab = sentencepiece_folder(folder)
    model_of(folder, vocab, bos_token_id=1, eos_token_id=2)
    write(folder, "tokenizer_config.json", dict(tokenizer_class="LlamaTokenizer", add_bos_token=True, bos_token="<s>", eos_token="</s>",
                                                unk_token="<unk>", model_input_names=["input_ids", "attention_mask"]))
    yield folder


def facts(folder, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    made = model.generation_config
    inputs = tokenizer("the king", return_tensors="pt")
    model.generate(**inputs, max_new_tokens=2, do_sample=False)  # raises where there are inputs that no model takes
    ends = made.eos_token_id
    alone = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    here = [tokenizer_export.ours(str(folder), text)[0] for text in texts]
    return {"ids": [tokenizer(text)["input_ids"] for text in texts], "here": sum(a != b for a, b in zip(alone, here)), "inputs": sorted(tokenizer("a")),
            "tokenizer": [tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token],
            "ends": ends if isinstance(ends, list) else [ends], "begin and padding": [made.bos_token_id, made.pad_token_id]}


def table(result):
    lines = [f"\n## transformers {transformers.__version__}\n",
             f"{result['texts']} texts.\n",
             "| model | texts with other ids: out beside in | here beside theirs | ends | begin, end, padding of the tokenizer | unequal |",
             "|---|---|---|---|---|---|"]
    for name, row in result["models"].items():
        words = ", ".join(f"`{word}`" if word else "none" for word in row["tokenizer"])
        lines.append(f"| {name} | {row['texts that differ']} | {row['here']} | {', '.join(map(str, row['ends']))} | {words} | "
                     f"{', '.join(row['unequal']) or 'nothing'} |")
    return "\n".join(lines) + "\n"


def own_run(program, work, text):
    """A run of the tutorial's kind and what it exports; the ids that it was trained on."""
    program("tokenize", text, "-o", work / "own", "--kind", "bpe", "--vocab", 600)
    (work / "input.toml").write_text(f"""version = 1
[run]
steps = 2
[model]
layers = 1
hidden = 32
heads = 4
context = 32
[data]
train = "{work}/own-train.h5"
[batch]
sequences = 2
""")
    program(work / "input.toml", "-d", work / "own-run")
    program("export", work / "own-run", "-o", work / "own-out")
    program("import", work / "own-out", "-o", work / "own-in")
    program("export", work / "own-in", "-o", work / "own-again")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    wish = parser.parse_args()
    work = wish.work or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(exist_ok=True)

    def program(*words):
        subprocess.run([wish.program, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    words = (TOKENIZERS / "text.txt").read_text().split()
    chance = random.Random(4)
    texts = ODD + [" ".join(chance.choices(words, k=chance.randint(1, 30))) for _ in range(200)]
    pairs = []
    for folder in chat_folders(work):
        checkpoint, out = work / f"{folder.name}-in", work / f"{folder.name}-out"
        program("import", folder, "-o", checkpoint)
        program("export", checkpoint, "-o", out)
        pairs.append((folder.name, folder, out))
    own_run(program, work, TOKENIZERS / "text.txt")
    pairs.append(("own tokenizer", work / "own-out", work / "own-again"))
    result = {"texts": len(texts), "models": {}}
    faults = 0
    for name, first, second in pairs:
        before, after = facts(first, texts), facts(second, texts)
        unequal = [key for key in before if before[key] != after[key]]
        ids = sum(a != b for a, b in zip(before["ids"], after["ids"]))
        result["models"][name] = {"texts that differ": ids, "here": after["here"], "unequal": unequal, "ends": after["ends"], "tokenizer": after["tokenizer"]}
        faults += len(unequal) + (before["here"] > KNOWN.get(name, 0)) + (after["here"] > KNOWN.get(name, 0))
        print(name, result["models"][name], *(f"{key}: {before[key]} {after[key]}" for key in unequal if key != "ids"))
    if wish.page:
        with wish.page.open("a") as page:
            page.write(table(result))
    sys.exit(faults != 0)


if __name__ == "__main__":
    main()
