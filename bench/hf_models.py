#!/usr/bin/env python3
"""Export and import beside the installed transformers: logits, greedy text, losses, bits, memory.

Called by bench/hf_models.sh, which installs what is needed. Random models of each family, larger than those of
tests/reference/hf: 4 layers, vocabulary 1,000.
"""
import argparse
import json
import pathlib
import re
import subprocess

import numpy
import torch
import transformers
from safetensors.torch import load_file

from plan_runs import launcher

COMMON = dict(vocab_size=1000, bos_token_id=None, eos_token_id=None)
LLAMA = dict(COMMON, hidden_size=128, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
             intermediate_size=352, max_position_embeddings=512)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=128)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, original_max_position_embeddings=128,
              low_freq_factor=1.0, high_freq_factor=4.0)
FAMILIES = {
    "GPT-2": transformers.GPT2Config(**COMMON, n_embd=128, n_layer=4, n_head=8, n_positions=512),
    "Llama": transformers.LlamaConfig(**LLAMA, rope_scaling=LLAMA3, tie_word_embeddings=False),
    "Mistral": transformers.MistralConfig(**LLAMA, sliding_window=None),
    "Qwen2": transformers.Qwen2Config(**LLAMA, rope_scaling=YARN),
    "Qwen3": transformers.Qwen3Config(**LLAMA, head_dim=32, tie_word_embeddings=True),
}
LENGTH, COUNT = 128, 12


def program(args, *words, ranks=1):
    done = subprocess.run(launcher(ranks) + [args.program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def random_model(config, folder):
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = ("norm" in name or ".ln_" in name) and name.endswith("weight")
            parameter.copy_(1 + 0.1 * torch.randn_like(parameter) if norm else 0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return model


def our_loss(args, checkpoint, tokens, cuboid, widths=()):
    ranks = int(numpy.prod(cuboid))
    options = ["--set", f"mesh.cuboid={list(cuboid)}"] if ranks > 1 else []
    for width in widths:
        options += ["--set", width]
    out = program(args, "eval", checkpoint, tokens, "--set", 'data.format="u16"', *options, ranks=ranks)
    return float(re.search(r"loss ([0-9.]+)", out).group(1))


def same_bits(first, second):
    a, b = load_file(first / "model.safetensors"), load_file(second / "model.safetensors")
    return a.keys() == b.keys() and all(a[n].dtype == b[n].dtype and torch.equal(a[n].view(torch.uint8), b[n].view(
        torch.uint8)) for n in a)


def family(args, name, config, work):
    theirs, checkpoint, ours = work / f"{name}-hf", work / f"{name}-ckpt", work / f"{name}-out"
    model = random_model(config, theirs)
    program(args, "import", theirs, "-o", checkpoint, "--context", LENGTH)
    ids = numpy.random.default_rng(2).integers(0, 1000, COUNT * LENGTH + 1).astype(numpy.uint16)
    tokens = work / "tokens.bin"
    ids.tofile(tokens)
    every = torch.tensor(ids.astype(numpy.int64))
    with torch.no_grad():
        logits = model(every[:-1].view(COUNT, LENGTH)).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).double(), every[1:]).item()
    meshes = [((1, 1, 1), ()), ((2, 2, 2), ()), ((3, 2, 2), ("mesh.tokens=[1,0,3]", "mesh.contractions=[1,3]"))]
    worst = max(abs(our_loss(args, checkpoint, tokens, *mesh) - loss) for mesh in meshes)
    whole = work / f"{name}-whole"
    program(args, "import", theirs, "-o", whole)
    program(args, "export", whole, "-o", ours)
    again = transformers.AutoModelForCausalLM.from_pretrained(ours).eval()
    with torch.no_grad():
        difference = (again(every[:-1].view(COUNT, LENGTH)).logits - logits).abs().max().item()
    text = [m.generate(every[None, :16], do_sample=False, max_new_tokens=64, pad_token_id=0)[0].tolist()
            for m in (model, again)]
    row = [type(again).__name__, f"{worst:.1e}", f"{difference:.1e}", "equal" if text[0] == text[1] else "DIFFERENT",
           "equal" if same_bits(theirs, ours) else "DIFFERENT"]
    print(f"| {name} | " + " | ".join(row) + " |", flush=True)


TUNE = """version = 1
[run]
steps = 10
[init]
from = "hf:{folder}"
[model]
context = {length}
[lora]
rank = 8
alpha = 16
targets = ["q", "k", "v", "o", "gate", "up", "down"]
[data]
train = "{tokens}"
format = "u16"
[batch]
sequences = 4
[optimizer]
lr = 1e-2
"""


def adapters(args, name, work):
    """Ten steps of adapters on 2 x 1 x 2; then PEFT's export on the base model beside the merged one, and our own loss."""
    import peft
    folder, tokens = work / f"{name}-hf", work / "tokens.bin"
    (work / f"{name}-tune.toml").write_text(TUNE.format(folder=folder, tokens=tokens, length=LENGTH))
    run = work / f"{name}-run"
    program(args, work / f"{name}-tune.toml", "-d", run, "--set", "mesh.cuboid=[2,1,2]", ranks=4)
    for form in ("hf", "peft"):
        program(args, "export", run, "-o", work / f"{name}-{form}-tuned", "--format", form)
    merged = transformers.AutoModelForCausalLM.from_pretrained(work / f"{name}-hf-tuned").eval()
    base = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tuned = peft.PeftModel.from_pretrained(base, work / f"{name}-peft-tuned").eval()
    ids = numpy.fromfile(tokens, numpy.uint16).astype(numpy.int64)
    every = torch.tensor(ids)
    batch = every[:-1].view(COUNT, LENGTH)
    with torch.no_grad():
        ours, theirs = merged(batch).logits, tuned(batch).logits
        before = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()(batch).logits
        loss = torch.nn.functional.cross_entropy(theirs.flatten(0, 1).double(), every[1:]).item()
    own = max(abs(our_loss(args, run, tokens, mesh) - loss) for mesh in ((1, 1, 1), (2, 2, 2)))
    scale = theirs.abs().max().item()
    print(f"| {name} | {(theirs - before).abs().max().item() / scale:.1e} | {(ours - theirs).abs().max().item() / scale:.1e} "
          f"| {own:.1e} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(2)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, fp32\n")
    print("| model | exported as | loss: worst of 1 rank, 2x2x2, uneven 3x2x2 | logits of the export | 64 greedy tokens "
          "| every tensor of export(import(x)) |")
    print("|---|---|---|---|---|---|")
    for name, config in FAMILIES.items():
        family(args, name, config, args.work)
    import peft
    print(f"\nAdapters of rank 8 on all matrices, ten steps on 2 x 1 x 2; PEFT {peft.__version__}\n")
    print("| model | logits that the training changed | PEFT's export on the base beside the merged export | loss here beside "
          "PEFT's, 1 rank and 2x2x2 |")
    print("|---|---|---|---|")
    for name in ("Llama", "Qwen2", "Qwen3"):
        adapters(args, name, args.work)


if __name__ == "__main__":
    main()
