#!/usr/bin/env python3
"""Times training steps of a model in PyTorch on CPU: the other side of bench/step_vs_pytorch.sh.

    pytorch_step.py --model gpt-30m --dtype bf16 --threads 2 --batch 4 --steps 5 [--compile]

A step is forward, backward, clipping by the global norm and AdamW (fused where PyTorch has it), on
random tokens. Prints one JSON object: seconds and tokens/s of each step, and the median. Steps of
warm-up (allocation, compilation) are not counted.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "reference"))
from pytorch_model import Model, Shape  # noqa: E402

MODELS = {  # as the presets of src/config/presets.cpp
    "gpt-30m": dict(layers=6, hidden=384, heads=6, vocab=50257, context=1024),
    "gpt2-124m": dict(layers=12, hidden=768, heads=12, vocab=50257, context=1024),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="gpt2-124m")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32",
                        help="bf16 = autocast; weights and optimizer stay fp32")
    parser.add_argument("--threads", type=int, default=0, help="0 = as PyTorch chooses")
    parser.add_argument("--batch", type=int, default=4, help="sequences per step")
    parser.add_argument("--context", type=int, default=0, help="0 = the model's")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    return parser.parse_args()


def main():
    args = arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    keys = dict(MODELS[args.model])
    keys["context"] = args.context or keys["context"]
    shape = Shape(**keys)
    model = Model(shape)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0, 0.02)
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": vectors, "weight_decay": 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95), fused=True)

    def forward_loss(ids, targets):
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bf16"):
            return model.loss(ids, targets)

    loss_of = torch.compile(forward_loss) if args.compile else forward_loss
    seconds, losses = [], []
    for step in range(args.warmup + args.steps):
        tokens = torch.randint(shape.vocab, (args.batch, shape.context + 1))
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(round(loss.item(), 4))
        if step >= args.warmup:
            seconds.append(time.perf_counter() - begin)
    per_step = [args.batch * shape.context / s for s in seconds]
    print(json.dumps({
        "model": args.model, "dtype": args.dtype, "threads": torch.get_num_threads(),
        "batch": args.batch, "context": shape.context, "compile": args.compile,
        "parameters": sum(p.numel() for p in model.parameters()), "torch": torch.__version__,
        "losses": losses, "seconds": [round(s, 4) for s in seconds],
        "tokens_per_second": [round(t, 1) for t in per_step],
        "median_tokens_per_second": round(statistics.median(per_step), 1),
    }))


if __name__ == "__main__":
    main()
