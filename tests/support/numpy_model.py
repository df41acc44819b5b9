"""The model of a checkpoint in plain numpy, by the words of docs/08-checkpoints.md only: what its tensors
mean is right if the loss of a text is the program's.

    numpy_model.py CHECKPOINT TEXT [FAULT]     prints the loss over all whole sequences of the bytes

FAULT breaks one statement of the document on purpose: qkv, gate, rope, heads, head, norm, stretch.
"""
import sys

import h5py
import numpy

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

folder, text_file = sys.argv[1:3]
fault = sys.argv[3] if len(sys.argv) > 3 else ""
master = h5py.File(folder + "/master.h5", "r")
shape = tomllib.loads(master["run/input"][()].decode())["model"]
heads, kv_heads, hidden = shape["heads"], shape["kv_heads"], shape["hidden"]
size = shape["head_size"] or hidden // heads
attention_bias = {"auto": shape["bias"], "none": False, "qkv": "qkv", "all": True}[shape["attention_bias"]]
has_bias = {"qkv": bool(attention_bias), "proj": attention_bias is True}


def tensor(name):
    return master[name][...].astype(numpy.float64)


def linear(x, name):
    y = x @ tensor(name + ".weight").T
    return y + tensor(name + ".bias") if has_bias.get(name.split(".")[-1], shape["bias"]) else y


def norm(x, name):
    if shape["norm"] == "rmsnorm":
        return x / numpy.sqrt((x**2).mean(-1, keepdims=True) + shape["norm_eps"]) * tensor(name + ".weight")
    x = x - x.mean(-1, keepdims=True)
    x = x / numpy.sqrt((x**2).mean(-1, keepdims=True) + shape["norm_eps"]) * tensor(name + ".weight")
    return x + tensor(name + ".bias") if shape["bias"] else x


def rotate(x):
    """[sequences, heads, T, size]: numbers d and d + size/2 turn by position * base^(-2 d / size)."""
    half = size // 2
    radians = shape["rope_base"] ** (-2 * numpy.arange(half) / size)
    if shape["rope_scaling"] == "llama3" and fault != "stretch":
        low, high = shape["rope_low_freq_factor"], shape["rope_high_freq_factor"]
        kept = (shape["rope_original_context"] * radians / (2 * numpy.pi) - low) / (high - low)
        kept = numpy.clip(kept, 0, 1)
        radians = radians * (kept + (1 - kept) / shape["rope_factor"])
    angle = numpy.arange(x.shape[-2])[:, None] * radians
    low, high = (x[..., ::2], x[..., 1::2]) if fault == "rope" else (x[..., :half], x[..., half:])
    return numpy.concatenate([low * numpy.cos(angle) - high * numpy.sin(angle),
                              high * numpy.cos(angle) + low * numpy.sin(angle)], -1)


def attention(x, name):
    count, length, _ = x.shape
    parts = [heads * size, (heads + kv_heads) * size]
    q, k, v = numpy.split(linear(x, name + ".qkv"), parts, -1)
    if fault == "qkv":
        k, v = v, k
    q, k, v = (part.reshape(count, length, -1, size).swapaxes(1, 2) for part in (q, k, v))
    if shape["qk_norm"] and fault != "norm":
        q, k = norm(q, name + ".q_norm"), norm(k, name + ".k_norm")
    if shape["position"] == "rope":
        q, k = rotate(q), rotate(k)
    group = heads // kv_heads  # query head h reads key head h // group
    of_head = numpy.arange(heads) % kv_heads if fault == "heads" else numpy.arange(heads) // group
    scores = q @ k[:, of_head].swapaxes(-1, -2) / numpy.sqrt(size)
    scores += numpy.triu(numpy.full((length, length), -numpy.inf), 1)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    out = weights / weights.sum(-1, keepdims=True) @ v[:, of_head]
    return linear(out.swapaxes(1, 2).reshape(count, length, -1), name + ".proj")


def feed_forward(x, name):
    if shape["activation"] == "swiglu":
        gate, up = numpy.split(linear(x, name + ".gate_up"), 2, -1)
        if fault == "gate":
            gate, up = up, gate
        return linear(gate / (1 + numpy.exp(-gate)) * up, name + ".down")
    u = linear(x, name + ".up")
    tanh = numpy.tanh(numpy.sqrt(2 / numpy.pi) * (u + 0.044715 * u**3))
    return linear(0.5 * u * (1 + tanh), name + ".down")


def main():
    data = numpy.frombuffer(open(text_file, "rb").read(), numpy.uint8).astype(int)
    context = shape["context"]
    count = (len(data) - 1) // context
    ids = data[:count * context].reshape(count, context)
    targets = data[1:count * context + 1].reshape(count, context)
    x = tensor("wte.weight")[ids]
    if shape["position"] == "learned":
        x = x + tensor("wpe.weight")[:context]
    for block in range(shape["layers"]):
        x = x + attention(norm(x, f"blocks.{block}.norm1"), f"blocks.{block}.attn")
        x = x + feed_forward(norm(x, f"blocks.{block}.norm2"), f"blocks.{block}.mlp")
    tied = shape["tied_embeddings"] != (fault == "head")
    logits = norm(x, "final_norm") @ tensor("wte.weight" if tied else "head.weight").T
    highest = logits.max(-1, keepdims=True)
    logits = logits - highest
    chosen = numpy.take_along_axis(logits, targets[..., None], -1)[..., 0]
    print(f"{(numpy.log(numpy.exp(logits).sum(-1)) - chosen).mean():.6f}")


main()
