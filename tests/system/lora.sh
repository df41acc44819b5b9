# Adapters of low rank on a model of Hugging Face's (tests/reference/hf): the same training on every cuboid, continued bit
# for bit; the merged export computes what the run does, PEFT's form holds the adapters, and what does not fit is refused.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
models=$T3D_SOURCE/tests/reference/hf
bytes=(--set 'data.format="bytes"')
near() { awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { d = a - b; exit !(d < most && d > -most) }' || fail "$4: $1, expected $2"; }
loss_of() { # CHECKPOINT RANKS
  run "$2" eval "$1" "$models/text.bin" "${bytes[@]}"
  expect_status 0
  loss=$(sed -n 's/^loss \([0-9.]*\).*/\1/p' screen.log)
}
cat > tune.toml <<TOML
version = 1
[run]
steps = 12
[init]
from = "hf:$models/qwen2"
[model]
context = 32
[lora]
rank = 4
alpha = 8
targets = ["q", "v", "o", "gate", "down"]
[data]
train = "$models/text.bin"
format = "bytes"
[batch]
sequences = 8
[optimizer]
lr = 1e-2
[hetero]
speeds = "equal"
[balance]
kind = "off"
[checkpoint]
every_steps = 6
TOML
run 1 tune.toml -d whole
expect_status 0
expect_text "of them trained"
run 12 tune.toml -d cut --set mesh.cuboid=[2,3,2] --set mesh.tokens=[1,3]
expect_status 0
near_losses whole cut 1e-4
run 2 tune.toml -d local --set mesh.replicas=2 --set 'aggregate.method="adasum"' --set 'aggregate.placement="post"'
expect_status 0

# From the checkpoint in the middle, and on another cuboid.
cp -r whole half && rm -r half/ckpt/step-00000012 && run 1 tune.toml -d half
expect_status 0
same_losses whole half 0
cp -r cut other && rm -r other/ckpt/step-00000012 && run 4 tune.toml -d other --set mesh.cuboid=[1,2,2]
expect_status 0
near_losses whole other 1e-4
run 1 tune.toml -d half --set lora.rank=2 --set run.steps=14
expect_status 78

# Out: with the adapters added, and alone.
loss_of whole 1
want=$loss
loss_of cut 4
near "$loss" "$want" 1e-4 "loss of the cut run"
run 1 export whole -o merged
expect_status 0
run 1 import merged -o in --context 32
expect_status 0
loss_of in 2
near "$loss" "$want" 1e-5 "loss of the merged export"
run 1 export whole -o peft --format peft
expect_status 0
python3 - "$models/qwen2" merged peft <<'PY' || fail "PEFT's form"
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    out = {}
    for name, e in header.items():
        raw = data[8 + length:][slice(*e["data_offsets"])]
        assert e["dtype"] == "F32", e
        out[name] = (e["shape"], struct.unpack(f"<{len(raw) // 4}f", raw))
    return out
base, merged = (tensors(f"{d}/model.safetensors") for d in sys.argv[1:3])
peft, config = tensors(f"{sys.argv[3]}/adapter_model.safetensors"), json.load(open(f"{sys.argv[3]}/adapter_config.json"))
assert config["r"] == 4 and config["lora_alpha"] == 8 and config["base_model_name_or_path"] == sys.argv[1], config
assert sorted(config["target_modules"]) == ["down_proj", "gate_proj", "o_proj", "q_proj", "v_proj"], config
layers = len({n.split(".")[4] for n in peft})
assert len(peft) == 2 * 5 * layers, sorted(peft)
changed = 0
for name, (shape, w) in base.items():
    prefix = "base_model.model." + name.removesuffix(".weight")
    want = list(w)
    if prefix + ".lora_A.weight" in peft:
        (r, cols), a = peft[prefix + ".lora_A.weight"]
        (rows, _), b = peft[prefix + ".lora_B.weight"]
        assert [rows, cols] == shape and r == 4
        for i in range(rows):
            for k in range(r):
                f = 2 * b[i * r + k]
                for j in range(cols):
                    want[i * cols + j] += f * a[k * cols + j]
        assert any(b), prefix
        changed += 1
    worst = max(abs(x - y) for x, y in zip(want, merged[name][1]))
    assert worst < 1e-6, (name, worst)
assert changed == 5 * layers
PY
run 1 export whole -o peft --format peft
expect_status 64

# A new run from this one: without adapters from the sum, with the same ones from both.
run 1 tune.toml -d after --set init.from=whole --set lora.rank=0 --set run.steps=1 --set batch.sequences=1
expect_status 0
expect_text "step-00000012, its adapters added to them"
run 1 tune.toml -d again --set init.from=whole --set run.steps=1 --set batch.sequences=1 \
  --set 'lora.targets=["down","v","q","gate","o"]'
expect_status 0
expect_text "step-00000012, with its adapters"
near_losses after again 1e-5
run 1 export after -o nothing --format peft
expect_status 78
expect_text "has no adapters"
run 1 export again -o again-peft --format peft
expect_status 0
expect_text "belong to the weights that the run began from (whole)"
run 1 import peft -o nothing
expect_status 66
expect_text "holds PEFT's adapters alone"

# GPT-2 keeps q, k and v in one matrix, of which PEFT has one adapter.
run 1 tune.toml -d gpt2 --set "init.from=hf:$models/gpt2" --set 'lora.targets=["q","v"]' --set run.steps=2
expect_status 0
run 1 export gpt2 -o nothing --format peft
expect_status 78
run 1 export gpt2 -o gpt2-merged
expect_status 0
loss_of gpt2 1
want=$loss
run 1 import gpt2-merged -o gpt2-in --context 32
expect_status 0
loss_of gpt2-in 1
near "$loss" "$want" 1e-5 "loss of the merged GPT-2"

# A part of a model alone, by names; what means nothing is refused.
run 2 tune.toml -d part --set lora.rank=0 --set 'model.freeze=["wte.*","blocks.0.*","*.norm2.*"]'
expect_status 0
expect_text "of them trained"
run 1 export part -o part-out
expect_status 0
python3 - "$models/qwen2" part-out <<'PY' || fail "frozen tensors"
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: data[8 + length:][slice(*e["data_offsets"])] for name, e in header.items()}
a, b = (tensors(f"{d}/model.safetensors") for d in sys.argv[1:3])
frozen = {n for n in a if "embed_tokens" in n or ".layers.0." in n or "post_attention_layernorm" in n}
assert frozen == {n for n in a if a[n] == b[n]}, frozen ^ {n for n in a if a[n] == b[n]}
PY
for wrong in 'lora.targets=["q","x"]' 'lora.targets=[]' 'model.freeze=["blocks.7.*"]' 'model.freeze=["a b"]' 'model.freeze=["wte.*"]' \
    'optimizer.kind="muon"' lora.rank=-1 lora.alpha=inf; do
  run 1 tune.toml -d refused --set "$wrong"
  expect_status 78
done
run 1 tune.toml -d refused --set lora.rank=0 --set 'model.freeze=["*"]'
expect_status 78
expect_text "leaves nothing to train"
