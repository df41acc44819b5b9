"""GPT-2, Llama and Qwen decoders in plain PyTorch: what our numbers are compared with.

Parameter names and shapes are those of transformer3d ("blocks.0.attn.qkv.weight" is
[(heads + 2 kv_heads) D, H], rows q, then k, then v; "blocks.0.mlp.gate_up.weight" has the gate's
rows first), so that a test or a benchmark can go through both sides by name.
"""
import fnmatch
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Shape:
    """The keys of table [model] in an input file."""
    layers: int
    hidden: int
    heads: int
    vocab: int
    context: int
    kv_heads: int = 0
    ffn: int = 0
    norm: str = "layernorm"    # layernorm | rmsnorm
    activation: str = "gelu"   # gelu (tanh form) | swiglu
    position: str = "learned"  # learned | rope
    rope_base: float = 10000.0
    norm_eps: float = 1e-5
    bias: bool = True
    tied_embeddings: bool = True
    head_size: int = 0
    qk_norm: bool = False
    attention_bias: str = "auto"  # auto | none | qkv | all
    rope_scaling: str = "none"    # none | linear | llama3 | yarn
    rope_factor: float = 1.0
    rope_original_context: int = 0
    rope_low_freq_factor: float = 1.0
    rope_high_freq_factor: float = 4.0
    rope_beta_fast: float = 32.0
    rope_beta_slow: float = 1.0
    freeze: tuple = ()            # patterns of parameters that are not trained
    lora_rank: int = 0            # the keys of table [lora]
    lora_alpha: float = 0.0
    lora_targets: tuple = ()

    def __post_init__(self):
        self.kv_heads = self.kv_heads or self.heads
        self.ffn = self.ffn or 4 * self.hidden
        self.head_size = self.head_size or self.hidden // self.heads

    def qkv_bias(self):
        return self.bias if self.attention_bias == "auto" else self.attention_bias != "none"

    def proj_bias(self):
        return self.bias if self.attention_bias == "auto" else self.attention_bias == "all"


class RmsNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def make_norm(shape):
    if shape.norm == "rmsnorm":
        return RmsNorm(shape.hidden, shape.norm_eps)
    return nn.LayerNorm(shape.hidden, eps=shape.norm_eps, bias=shape.bias)


def frequencies(shape):
    """Radians per token of each pair, and the factor of sine and cosine (Hugging Face's formulas)."""
    size, factor, base = shape.head_size, shape.rope_factor, shape.rope_base
    pair = torch.arange(size // 2, dtype=torch.float64)
    plain = base ** (-2.0 * pair / size)
    if shape.rope_scaling == "linear":
        return plain / factor, 1.0
    if shape.rope_scaling == "llama3":
        low, high = shape.rope_low_freq_factor, shape.rope_high_freq_factor
        wave = 2 * math.pi / plain
        smooth = (shape.rope_original_context / wave - low) / (high - low)
        mixed = (1 - smooth) * plain / factor + smooth * plain
        slow = torch.where(wave > shape.rope_original_context / low, plain / factor, plain)
        medium = (wave <= shape.rope_original_context / low) & (wave >= shape.rope_original_context / high)
        return torch.where(medium, mixed, slow), 1.0
    if shape.rope_scaling == "yarn":
        def pair_of(turns):
            return size * math.log(shape.rope_original_context / (turns * 2 * math.pi)) / (2 * math.log(base))
        low = max(math.floor(pair_of(shape.rope_beta_fast)), 0)
        high = min(math.ceil(pair_of(shape.rope_beta_slow)), size - 1)
        ramp = ((pair - low) / (high - low)).clamp(0, 1)
        return plain / factor * ramp + plain * (1 - ramp), 0.1 * math.log(factor) + 1
    return plain, 1.0


def rotate(x, shape):
    """RoPE on [.., T, D]: pairs are (d, d + D/2), angle = position * frequency of the pair."""
    length, size = x.shape[-2], x.shape[-1]
    radians, amplitude = frequencies(shape)
    position = torch.arange(length, dtype=torch.float64, device=x.device)
    angle = position[:, None] * radians.to(x.device)
    cosine, sine = (amplitude * angle.cos()).to(x.dtype), (amplitude * angle.sin()).to(x.dtype)
    low, high = x[..., :size // 2], x[..., size // 2:]
    return torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)


class Linear(nn.Linear):
    """With low-rank adapters on the parts of its output that are targets: [(name, rows), ...].

    lora_a stacks the parts' A [rank, in], lora_b their B [rows, rank].
    """

    def __init__(self, shape, inputs, parts, bias):
        super().__init__(inputs, sum(rows for _, rows in parts), bias=bias)
        self.parts, self.rank = parts, shape.lora_rank
        self.adapted = [name for name, _ in parts if self.rank and name in shape.lora_targets]
        if self.adapted:
            self.factor = (shape.lora_alpha or self.rank) / self.rank
            rows = sum(rows for name, rows in parts if name in self.adapted)
            self.lora_a = nn.Parameter(torch.zeros(len(self.adapted) * self.rank, inputs))
            self.lora_b = nn.Parameter(torch.zeros(rows, self.rank))

    def forward(self, x):
        y = super().forward(x)
        if not self.adapted:
            return y
        out, low, row = [], 0, 0
        for (name, rows), part in zip(self.parts, y.split([rows for _, rows in self.parts], -1)):
            if name in self.adapted:
                u = F.linear(x, self.lora_a[low:low + self.rank])
                part = part + self.factor * F.linear(u, self.lora_b[row:row + rows])
                low, row = low + self.rank, row + rows
            out.append(part)
        return torch.cat(out, -1)


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        q, kv = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
        self.qkv = Linear(shape, shape.hidden, [("q", q), ("k", kv), ("v", kv)], shape.qkv_bias())
        self.proj = Linear(shape, q, [("o", shape.hidden)], shape.proj_bias())
        if shape.qk_norm:
            self.q_norm = RmsNorm(shape.head_size, shape.norm_eps)
            self.k_norm = RmsNorm(shape.head_size, shape.norm_eps)

    def forward(self, x):
        batch, length, _ = x.shape
        shape, size = self.shape, self.shape.head_size
        parts = self.qkv(x).split([n * size for n in (shape.heads, shape.kv_heads, shape.kv_heads)], -1)
        q, k, v = (p.view(batch, length, -1, size).transpose(1, 2) for p in parts)
        if shape.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        if shape.position == "rope":
            q, k = rotate(q, shape), rotate(k, shape)
        if shape.kv_heads != shape.heads:  # query head h reads key head h // (heads / kv_heads)
            k = k.repeat_interleave(shape.heads // shape.kv_heads, 1)
            v = v.repeat_interleave(shape.heads // shape.kv_heads, 1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        if shape.activation == "swiglu":
            self.gate_up = Linear(shape, shape.hidden, [("gate", shape.ffn), ("up", shape.ffn)],
                                  shape.bias)
        else:
            self.up = Linear(shape, shape.hidden, [("up", shape.ffn)], shape.bias)
        self.down = Linear(shape, shape.ffn, [("down", shape.hidden)], shape.bias)

    def forward(self, x):
        if hasattr(self, "gate_up"):
            gate, up = self.gate_up(x).chunk(2, -1)
            return self.down(F.silu(gate) * up)
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm1, self.attn = make_norm(shape), Attention(shape)
        self.norm2, self.mlp = make_norm(shape), Mlp(shape)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.wte = nn.Embedding(shape.vocab, shape.hidden)
        if shape.position == "learned":
            self.wpe = nn.Embedding(shape.context, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.final_norm = make_norm(shape)
        if not shape.tied_embeddings:
            self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        for name, parameter in self.named_parameters():
            adapter = name.endswith((".lora_a", ".lora_b"))
            frozen = shape.lora_rank or any(fnmatch.fnmatchcase(name, p) for p in shape.freeze)
            parameter.requires_grad = adapter or not frozen

    def forward(self, ids):
        """Logits [batch, T, V] of token numbers [batch, T]."""
        x = self.wte(ids)
        if hasattr(self, "wpe"):
            x = x + self.wpe.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        head = self.wte.weight if self.shape.tied_embeddings else self.head.weight
        return F.linear(self.final_norm(x), head)

    def loss(self, ids, targets):
        logits = self(ids)
        return F.cross_entropy(logits.flatten(0, 1).float()
                               if logits.dtype == torch.bfloat16 else logits.flatten(0, 1),
                               targets.flatten())


def adamw(model, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
    """AdamW as in transformer3d: matrices (embeddings too) decay, vectors do not."""
    trained = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in trained if p.ndim >= 2]
    vectors = [p for p in trained if p.ndim < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": weight_decay},
                              {"params": vectors, "weight_decay": 0.0}],
                             lr=lr, betas=betas, eps=eps)
