#!/usr/bin/env python3
"""Writes NAME.h5 of the cases below: logits, loss, gradients and ten AdamW steps by PyTorch.

Needs torch, numpy and h5py (pip install torch numpy h5py); the files are checked in, so that the
tests need none of them. Run it again only when a case changes: it takes seconds.

Both sides make weights and tokens from one formula, all in 32-bit integers and fp32:

    hash32(name, index) = fmix32(fnv1a32(name) + index * 0x9E3779B9)       modulo 2^32
    fnv1a32: h = 0x811C9DC5; for each byte: h = (h ^ byte) * 0x01000193    modulo 2^32
    fmix32:  x ^= x >> 16; x *= 0x85EBCA6B; x ^= x >> 13; x *= 0xC2B2AE35; x ^= x >> 16
    u(name, index) = float(int(hash32 % 2000) - 1000) / 1000.0f            in [-1, 1)
    weights        = 0.25f * u      all matrices and biases, embeddings too
    norm weights   = 1 + 0.125f * u ("...norm1.weight", "...norm2.weight", "final_norm.weight")
    token(s, t)    = hash32("tokens", s * (context + 1) + t) % vocab,  s = 0..2, t = 0..context
                     inputs are t < context, targets t + 1

index is the row-major element number in the parameter's global shape. The factors are powers of
two: a fused multiply-add gives the same bits. Each file holds (fp32 unless said):

    attribute case        JSON: the keys of table [model], the batch and the optimizer
    ids, targets          int32 [3, context]
    checksum/NAME         fp64 sum of the initial parameter, to find a wrong formula first
    logits                [3, context, vocab] with the initial weights
    loss                  mean over all 3 * context positions
    grads/NAME            of that loss, every element, before clipping; of what is trained
    adamw/losses          [10] loss before each update
    adamw/grad_norms      [10] global L2 norm before clipping
"""
import json
import pathlib
import sys

import h5py
import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pytorch_model import Model, Shape, adamw  # noqa: E402

CASES = {
    "gpt2": Shape(layers=2, hidden=32, heads=4, vocab=61, context=16),
    "llama": Shape(layers=2, hidden=48, heads=6, kv_heads=2, ffn=80, vocab=61, context=16,
                   norm="rmsnorm", activation="swiglu", position="rope", bias=False,
                   tied_embeddings=False),
    "qwen2": Shape(layers=2, hidden=48, heads=6, kv_heads=3, ffn=80, vocab=61, context=16,
                   norm="rmsnorm", activation="swiglu", position="rope", bias=False,
                   attention_bias="qkv", rope_scaling="yarn", rope_factor=4.0,
                   rope_original_context=256, rope_base=100.0, tied_embeddings=False),
    "qwen3": Shape(layers=2, hidden=48, heads=6, kv_heads=3, ffn=80, vocab=61, context=16,
                   norm="rmsnorm", activation="swiglu", position="rope", bias=False,
                   head_size=12, qk_norm=True, rope_scaling="llama3", rope_factor=8.0,
                   rope_original_context=8, rope_base=100.0),
    "lora": Shape(layers=2, hidden=48, heads=6, kv_heads=3, ffn=80, vocab=61, context=16,
                  norm="rmsnorm", activation="swiglu", position="rope", bias=False,
                  attention_bias="qkv", tied_embeddings=False, lora_rank=4, lora_alpha=6.0,
                  lora_targets=("q", "v", "o", "up", "down")),
    "lora_gpt2": Shape(layers=2, hidden=32, heads=4, vocab=61, context=16, lora_rank=3,
                       lora_targets=("k", "up")),
    "frozen": Shape(layers=2, hidden=32, heads=4, vocab=61, context=16,
                    freeze=("wte.*", "blocks.0.*", "*.norm2.*", "blocks.1.mlp.up.weight")),
}


SEQUENCES, STEPS = 3, 10
OPTIMIZER = dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
CLIP_NORM = 1.0


def hash32(name, count):
    h = 0x811C9DC5
    for byte in name.encode():
        h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF
    x = (h + np.arange(count, dtype=np.uint64) * 0x9E3779B9) & 0xFFFFFFFF
    x ^= x >> 16
    x = (x * 0x85EBCA6B) & 0xFFFFFFFF
    x ^= x >> 13
    x = (x * 0xC2B2AE35) & 0xFFFFFFFF
    x ^= x >> 16
    return x


def initial(name, shape):
    u = (hash32(name, int(np.prod(shape))) % 2000).astype(np.float32) - np.float32(1000)
    u = u / np.float32(1000)
    is_norm = "norm" in name and name.endswith(".weight")
    w = np.float32(1) + np.float32(0.125) * u if is_norm else np.float32(0.25) * u
    return w.reshape(shape)


def trained(model):
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


def compute(shape, dtype):
    """Everything that a file holds, as numpy arrays by path."""
    torch.manual_seed(0)
    model = Model(shape).to(dtype)
    out = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            w = initial(name, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(w))
            out["checksum/" + name] = np.float64(w.astype(np.float64).sum())
    tokens = hash32("tokens", SEQUENCES * (shape.context + 1)) % shape.vocab
    tokens = torch.from_numpy(tokens.astype(np.int64)).view(SEQUENCES, shape.context + 1)
    ids, targets = tokens[:, :-1], tokens[:, 1:]
    out["ids"], out["targets"] = ids.numpy().astype(np.int32), targets.numpy().astype(np.int32)
    out["logits"] = model(ids).detach().numpy()
    optimizer = adamw(model, **OPTIMIZER)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss(ids, targets)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            out["loss"] = np.float32(loss.item())
            for name, parameter in trained(model):
                out["grads/" + name] = parameter.grad.numpy().copy()
        norms.append(torch.nn.utils.clip_grad_norm_(
            [parameter for _, parameter in trained(model)], CLIP_NORM).item())
        optimizer.step()
    out["adamw/losses"], out["adamw/grad_norms"] = np.array(losses), np.array(norms)
    return out


def worst_difference(single, double):
    """Largest error of fp32 against fp64, relative to each array's largest element."""
    worst = (0.0, "")
    for path, value in double.items():
        scale = max(np.abs(value).max(), 1e-6)
        error = np.abs(np.asarray(single[path], np.float64) - value).max() / scale
        worst = max(worst, (float(error), path))
    return worst


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(__file__).parent
    for case in sys.argv[1:] or CASES:
        shape = CASES[case]
        single, double = compute(shape, torch.float32), compute(shape, torch.float64)
        error, path = worst_difference(single, double)
        print(f"{case}: loss {single['loss']:.7f}, after ten steps {single['adamw/losses'][-1]:.7f}; "
              f"fp32 against fp64: {error:.1e} at {path}")
        if error > 2e-5:
            sys.exit(f"{case}: fp32 and fp64 do not agree at {path}; no file written")
        with h5py.File(folder / f"{case}.h5", "w", libver="earliest") as file:
            case_keys = dict(vars(shape), sequences=SEQUENCES, steps=STEPS, clip_norm=CLIP_NORM,
                             **OPTIMIZER, torch=str(torch.__version__))
            file.attrs["case"] = np.bytes_(json.dumps(case_keys))
            for name, value in single.items():
                value = np.asarray(value)
                if value.dtype == np.float64 and not name.startswith("checksum"):
                    value = value.astype(np.float32)
                file.create_dataset(name, data=value, track_times=False)


if __name__ == "__main__":
    main()
