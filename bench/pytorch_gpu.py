#!/usr/bin/env python3
"""Training steps of GPT-2 and Llama in PyTorch on one GPU: the other side of jobs/gpu_check.sh.

    pytorch_gpu.py --model gpt2-124m --variant eager|compile|compile-cudnn [--json FILE]

The same work as ours: bf16 autocast over fp32 weights, fused
AdamW (0.9, 0.95, decay 0.1 on matrices), clipping at 1.0, no dropout, vocabulary padded to a
multiple of 64. compile-cudnn forces cuDNN's attention, which PyTorch does not take by itself. The batch
is fixed, so the loss must fall: a run whose loss does not is reported as failed. --device cpu --tiny
only shows that the script runs.
"""
import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

MODELS = {  # layers, hidden, heads, feed-forward, vocabulary, context, default batch
    "gpt2-124m": (12, 768, 12, 3072, 50304, 1024, 64),
    "gpt2-350m": (24, 1024, 16, 4096, 50304, 1024, 32),
    "gpt2-774m": (36, 1280, 20, 5120, 50304, 1024, 16),
    "gpt2-1558m": (48, 1600, 25, 6400, 50304, 1024, 8),
    "llama2-7b": (32, 4096, 32, 11008, 32000, 2048, 2),
}


class Attention(nn.Module):
    def __init__(self, hidden, heads, bias, rope):
        super().__init__()
        self.heads, self.rope = heads, rope
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=bias)
        self.proj = nn.Linear(hidden, hidden, bias=bias)

    def forward(self, x, angles):
        rows, length, hidden = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.rope:
            q, k = rotate(q, angles), rotate(k, angles)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.transpose(1, 2).reshape(rows, length, hidden))


def rotate(x, angles):
    cos, sin = angles
    low, high = x.chunk(2, dim=-1)
    return torch.cat((low * cos - high * sin, low * sin + high * cos), dim=-1).to(x.dtype)


class Swiglu(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate_up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(functional.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, hidden, heads, ffn, llama):
        super().__init__()
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.norm1, self.norm2 = norm(hidden, eps=1e-5), norm(hidden, eps=1e-5)
        self.attention = Attention(hidden, heads, not llama, llama)
        self.mlp = Swiglu(hidden, ffn) if llama else nn.Sequential(
            nn.Linear(hidden, ffn), nn.GELU(approximate="tanh"), nn.Linear(ffn, hidden))

    def forward(self, x, angles):
        x = x + self.attention(self.norm1(x), angles)
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, layers, hidden, heads, ffn, vocab, context, llama, recompute):
        super().__init__()
        self.recompute = recompute
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = None if llama else nn.Embedding(context, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, ffn, llama) for _ in range(layers))
        self.norm = (nn.RMSNorm if llama else nn.LayerNorm)(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, vocab, bias=False)
        if not llama:
            self.head.weight = self.tokens.weight
        steps = torch.outer(torch.arange(context, dtype=torch.float32),
                            10000 ** (-torch.arange(0, hidden // heads, 2) / (hidden // heads)))
        self.register_buffer("cos", steps.cos(), persistent=False)
        self.register_buffer("sin", steps.sin(), persistent=False)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        angles = (self.cos[: ids.shape[1]], self.sin[: ids.shape[1]])
        for block in self.blocks:
            if self.recompute:
                x = torch.utils.checkpoint.checkpoint(block, x, angles, use_reentrant=False)
            else:
                x = block(x, angles)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="gpt2-124m")
    parser.add_argument("--variant", choices=["eager", "compile", "compile-cudnn"], default="eager")
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--context", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--precision", choices=["autocast", "pure-bf16"], default="autocast")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json")
    return parser.parse_args()


def build(args):
    layers, hidden, heads, ffn, vocab, context, batch = MODELS[args.model]
    context, batch = args.context or context, args.batch or batch
    if args.tiny:
        layers, hidden, heads, ffn, vocab, context, batch = 2, 64, 2, 256, 320, 32, 4
    llama = args.model.startswith("llama")
    torch.manual_seed(1)
    model = Model(layers, hidden, heads, ffn, vocab, context, llama, llama).to(args.device)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0, 0.02)
    if args.precision == "pure-bf16":
        model = model.to(torch.bfloat16)
    ids = torch.randint(0, vocab, (batch, context + 1), device=args.device)
    return model, ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), batch * context


def main():
    args = arguments()
    torch.set_float32_matmul_precision("high")
    model, ids, targets, tokens = build(args)
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": vectors, "weight_decay": 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95), fused=args.device == "cuda")
    run = torch.compile(model) if args.variant.startswith("compile") else model
    attention = contextlib.nullcontext()
    if args.variant == "compile-cudnn":
        from torch.nn.attention import SDPBackend, sdpa_kernel
        attention = sdpa_kernel(SDPBackend.CUDNN_ATTENTION)

    def wait():
        if args.device == "cuda":
            torch.cuda.synchronize()

    losses, times, started = [], [], time.time()
    with attention:
        for step in range(args.warmup + args.steps):
            if step == args.warmup:
                wait()
                warm_seconds = time.time() - started
            begin = time.time()
            with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "autocast"):
                loss = run(ids, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
            wait()
            if step >= args.warmup:
                times.append(time.time() - begin)
    losses = [float(loss) for loss in losses]
    times.sort()
    median = statistics.median(times)
    result = {"model": args.model, "variant": args.variant, "precision": args.precision,
              "torch": torch.__version__, "tokens_per_step": tokens, "seconds": median,
              "p10": times[len(times) // 10], "p90": times[len(times) * 9 // 10],
              "tokens_per_second": tokens / median, "warmup_seconds": warm_seconds,
              "peak_bytes": torch.cuda.max_memory_allocated() if args.device == "cuda" else 0,
              "first_loss": losses[0], "last_loss": losses[-1]}
    print(json.dumps(result))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file)
    if not losses[-1] < losses[0]:
        sys.exit(f"the loss did not fall: {losses[0]} to {losses[-1]}")


if __name__ == "__main__":
    main()
