#!/usr/bin/env python3
"""Writes hf/NAME: small models of Hugging Face's families with random weights, and what they compute.

Needs torch, transformers and numpy; the folders are checked in, so that the tests need none of them.
Run it again only when a case changes: it takes seconds.

Each folder holds config.json and model.safetensors as save_pretrained() writes them, and

    text.bin        the bytes that are the tokens (vocabulary 256)
    expected.json   loss: mean over all whole sequences of 32 tokens of the text, targets one later;
                    greedy: the 64 tokens that follow the first 8 of the text
                    (both by the family's own code in fp32, from the weights as they are stored);
                    training: the losses of 20 AdamW steps on them, 8 sequences each in the order of
                    the text, by pytorch_model.py in fp64 (lr 1e-3, clipped at 1)
"""
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pytorch_model import Model, Shape, adamw  # noqa: E402

LENGTH, PROMPT, GREEDY = 32, 8, 64
STEPS, BATCH = 20, 8
SMALL = dict(vocab_size=256, bos_token_id=None, eos_token_id=None, initializer_range=0.2)
LLAMA = dict(SMALL, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=48, max_position_embeddings=128)
CASES = {
    "gpt2": (transformers.GPT2Config(**SMALL, n_embd=32, n_layer=2, n_head=4, n_positions=128,
                                     layer_norm_epsilon=1e-6), torch.float32),
    "llama": (transformers.LlamaConfig(**LLAMA, tie_word_embeddings=False, rope_theta=500.0, rope_scaling=dict(
        rope_type="llama3", rope_theta=500.0, factor=4.0, original_max_position_embeddings=32, low_freq_factor=1.0,
        high_freq_factor=4.0)), torch.bfloat16),
    "llama_bias": (transformers.LlamaConfig(**LLAMA, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
                   torch.float16),
    "mistral": (transformers.MistralConfig(**LLAMA, sliding_window=None, head_dim=16), torch.bfloat16),
    "qwen2": (transformers.Qwen2Config(**LLAMA, tie_word_embeddings=True, use_sliding_window=False,
                                       rope_scaling=dict(rope_type="yarn", rope_theta=500.0, factor=4.0,
                                                         original_max_position_embeddings=32)), torch.float32),
    "qwen3": (transformers.Qwen3Config(**LLAMA, tie_word_embeddings=True, head_dim=16,
                                       rope_scaling=dict(rope_type="linear", rope_theta=500.0, factor=2.0)),
              torch.bfloat16),
}


def randomise(model):
    """Norms, biases and all: what is 1 or 0 in a fresh model must not hide a mistake."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            norm = ("norm" in name or ".ln_" in name) and name.endswith("weight")
            parameter.copy_(1 + 0.1 * noise if norm else 0.2 * noise)


def text_bytes():
    words = ["Ein", "kleiner", "text", "about", "nodes", "of", "42", "ages;", "\n", "\u00fcber", "speeds,"]
    picks = np.random.default_rng(3).integers(0, len(words), 300)
    return " ".join(words[n] for n in picks).encode()


def expected(model, data):
    ids = torch.tensor(list(data))
    count = (len(ids) - 1) // LENGTH
    inputs = ids[:count * LENGTH].view(count, LENGTH)
    targets = ids[1:count * LENGTH + 1].view(count, LENGTH)
    with torch.no_grad():
        logits = model(inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).double(), targets.flatten())
        greedy = ids[None, :PROMPT]
        for _ in range(GREEDY):
            greedy = torch.cat([greedy, model(greedy).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return {"loss": loss.item(), "greedy": greedy[0, PROMPT:].tolist()}


def shape_of(config):
    """The keys of [model] for a Hugging Face configuration."""
    if config.model_type == "gpt2":
        return Shape(layers=config.n_layer, hidden=config.n_embd, heads=config.n_head, vocab=256, context=LENGTH,
                     norm_eps=config.layer_norm_epsilon)
    rope = config.rope_parameters
    shape = Shape(layers=config.num_hidden_layers, hidden=config.hidden_size, heads=config.num_attention_heads,
                  kv_heads=config.num_key_value_heads, ffn=config.intermediate_size, vocab=256, context=LENGTH,
                  norm="rmsnorm", activation="swiglu", position="rope", norm_eps=config.rms_norm_eps,
                  bias=getattr(config, "mlp_bias", False), tied_embeddings=config.tie_word_embeddings,
                  head_size=getattr(config, "head_dim", 0) or 0, qk_norm=config.model_type == "qwen3",
                  rope_base=rope["rope_theta"])
    if config.model_type == "qwen2":
        shape.attention_bias = "qkv"
    if rope["rope_type"] != "default":
        shape.rope_scaling, shape.rope_factor = rope["rope_type"], rope["factor"]
        shape.rope_original_context = rope.get("original_max_position_embeddings", 0)
        shape.rope_low_freq_factor = rope.get("low_freq_factor", 1.0)
        shape.rope_high_freq_factor = rope.get("high_freq_factor", 4.0)
    return shape


def our_weights(weights, shape):
    """Hugging Face's tensors under our names."""
    get = lambda name: weights[name].double()
    out = {}
    if shape.position == "learned":
        out["wte.weight"], out["wpe.weight"] = get("transformer.wte.weight"), get("transformer.wpe.weight")[:LENGTH]
        pairs = [("ln_1", "norm1"), ("attn.c_attn", "attn.qkv"), ("attn.c_proj", "attn.proj"), ("ln_2", "norm2"),
                 ("mlp.c_fc", "mlp.up"), ("mlp.c_proj", "mlp.down")]
        for n in range(shape.layers):
            for theirs, ours in pairs:
                weight = get(f"transformer.h.{n}.{theirs}.weight")
                out[f"blocks.{n}.{ours}.weight"] = weight.T if weight.ndim == 2 else weight
                out[f"blocks.{n}.{ours}.bias"] = get(f"transformer.h.{n}.{theirs}.bias")
        out["final_norm.weight"], out["final_norm.bias"] = get("transformer.ln_f.weight"), get("transformer.ln_f.bias")
        return out
    out["wte.weight"], out["final_norm.weight"] = get("model.embed_tokens.weight"), get("model.norm.weight")
    if not shape.tied_embeddings:
        out["head.weight"] = get("lm_head.weight")
    groups = {"attn.qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "attn.proj": ["self_attn.o_proj"],
              "mlp.gate_up": ["mlp.gate_proj", "mlp.up_proj"], "mlp.down": ["mlp.down_proj"],
              "norm1": ["input_layernorm"], "norm2": ["post_attention_layernorm"],
              "attn.q_norm": ["self_attn.q_norm"], "attn.k_norm": ["self_attn.k_norm"]}
    for n in range(shape.layers):
        for ours, theirs in groups.items():
            for kind in ("weight", "bias"):
                names = [f"model.layers.{n}.{name}.{kind}" for name in theirs]
                if names[0] in weights:
                    out[f"blocks.{n}.{ours}.{kind}"] = torch.cat([get(name) for name in names])
    return out


def training(hf_model, data):
    shape = shape_of(hf_model.config)
    model = Model(shape).double()
    weights = our_weights(hf_model.state_dict(), shape)
    model.load_state_dict(weights, strict=True)
    ids = torch.tensor(list(data))
    count = (len(ids) - 1) // LENGTH
    optimizer = adamw(model, 1e-3)
    losses = []
    for step in range(STEPS):
        rows = [(step * BATCH + n) % count for n in range(BATCH)]
        inputs = torch.stack([ids[row * LENGTH:(row + 1) * LENGTH] for row in rows])
        targets = torch.stack([ids[row * LENGTH + 1:(row + 1) * LENGTH + 1] for row in rows])
        optimizer.zero_grad()
        loss = model.loss(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(__file__).parent / "hf"
    shutil.rmtree(folder, ignore_errors=True)
    data = text_bytes()
    folder.mkdir()
    (folder / "text.bin").write_bytes(data)
    for name, (config, dtype) in CASES.items():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        randomise(model)
        model.to(dtype).save_pretrained(folder / name)
        again = transformers.AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32).eval()
        result = expected(again, data)
        result["training"] = training(again, data)
        (folder / name / "expected.json").write_text(json.dumps(result) + "\n")
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        print(f"{name}: {dtype}, loss {result['loss']:.6f}, {len(set(result['greedy']))} different greedy "
              f"tokens, after training {result['training'][-1]:.6f}")


if __name__ == "__main__":
    main()
