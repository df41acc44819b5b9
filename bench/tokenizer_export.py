#!/usr/bin/env python3
"""The tokenizer of an exported model: the same ids and texts here and in the installed transformers.

    bench/tokenizer_export.py FOLDER [--texts 400]

FOLDER is what `transformer3d export` wrote of a run with a tokenizer of `tokenize --kind bpe`. Ends with 1 when anything
differs. Needs transformers, perl, and build/cpu/bench/t3d_bench_tokenizers (or $T3D_BENCH).
"""
import argparse
import array
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import tokenizers
import tokenizers_text
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = os.environ.get("T3D_BENCH", str(ROOT / "build/cpu/bench/t3d_bench_tokenizers"))
ODD = ["", " ", "   ", "\n", "\r\n\t", "\u2581", "a \u2581 b\u2581\u2581", "<eos>", "the end<eos></s><unk> of it", "<0x0A>", "nul\0inside", "\ufeff\u200b\u00a0"]


def ours(folder, text):
    with tempfile.TemporaryDirectory() as scratch:
        path, out = os.path.join(scratch, "text"), os.path.join(scratch, "out")
        pathlib.Path(path).write_bytes(text.encode())
        subprocess.run([BENCH, folder, path, out, "0"], check=True, stdout=subprocess.DEVNULL)
        return array.array("i", pathlib.Path(out + ".ids").read_bytes()).tolist(), pathlib.Path(out + ".text").read_bytes().decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--texts", type=int, default=400)
    wish = parser.parse_args()
    tokenizer = transformers.AutoTokenizer.from_pretrained(wish.folder)
    source = tokenizers_text.Text(7, tokenizers_text.characters())
    texts = ODD + [source.make(20 + 37 * n) for n in range(wish.texts)] + [source.every()]
    letters = random.Random(5)
    texts += ["".join(letters.choices("aab oe\n", k=letters.randint(1, 400))) for _ in range(wish.texts // 2)]
    faults, count = 0, 0
    for text in texts:
        ids, back = ours(wish.folder, text)
        theirs = tokenizer(text)
        count += len(ids)
        unequal = [what for what, equal in [("ids", theirs["input_ids"] == ids), ("text", tokenizer.decode(ids) == back == text),
                                            ("inputs", set(theirs) == {"input_ids", "attention_mask"})] if not equal]
        if unequal:
            faults += 1
            print(f"{', '.join(unequal)} of {text[:60]!r} differ: {ids[:20]}, {theirs['input_ids'][:20]}")
    print(f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, {type(tokenizer).__name__}, end of text "
          f"{tokenizer.eos_token} = {tokenizer.eos_token_id}: {len(texts)} texts, {count} ids, {faults} texts differ")
    sys.exit(faults != 0)


if __name__ == "__main__":
    main()
