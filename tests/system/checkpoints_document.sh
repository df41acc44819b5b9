# docs/08-checkpoints.md tells the truth: its example runs on a checkpoint of this program, every tensor
# of the checkpoint stands in its tables, and a model written in numpy by its words has the program's loss.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
document=$T3D_SOURCE/docs/08-checkpoints.md
python=""
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import h5py, numpy' 2> /dev/null; then python=$candidate; break; fi
done
[[ -n "$python" ]] || fail "python3-h5py is not installed"
model() { "$python" "$T3D_SOURCE/tests/support/numpy_model.py" "$@" || fail "numpy_model.py $*"; }

make_text 20000
make_input
head -c 3000 text.txt > held_out.txt
# On several ranks, so that no tensor lies whole in one file.
run 4 input.toml -d gpt --set "mesh.cuboid=[1,2,2]"
expect_status 0
run 2 input.toml -d llama --set "mesh.cuboid=[1,2,1]" --set 'model.norm="rmsnorm"' --set 'model.activation="swiglu"' \
  --set 'model.position="rope"' --set model.bias=false --set model.kv_heads=2 --set model.tied_embeddings=false \
  --set 'optimizer.kind="muon"' --set run.steps=40 --set model.init_std=0.1 --set optimizer.lr=1e-2
expect_status 0

run 2 input.toml -d qwen --set "mesh.cuboid=[1,1,2]" --set 'model.norm="rmsnorm"' --set 'model.activation="swiglu"' \
  --set 'model.position="rope"' --set model.bias=false --set model.kv_heads=2 --set model.head_size=12 \
  --set model.qk_norm=true --set 'model.attention_bias="qkv"' --set 'model.rope_scaling="llama3"' \
  --set model.rope_factor=8 --set model.rope_original_context=8 --set model.rope_base=100 \
  --set run.steps=40 --set model.init_std=0.1 --set optimizer.lr=1e-2
expect_status 0

declare -A loss_of
for name in gpt qwen llama; do
  checkpoint=$(ls -d $name/ckpt/step-*)
  run 1 eval "$checkpoint" held_out.txt --set 'data.format="bytes"'
  expect_status 0
  loss=$(sed -n 's/^loss \([0-9.]*\).*/\1/p' screen.log)
  loss_of[$name]=$loss
  ours=$(model "$checkpoint" held_out.txt)
  awk -v a="$loss" -v b="$ours" 'BEGIN { d = a - b; exit !(d < 2e-5 && d > -2e-5) }' ||
    fail "$name: the program's loss is $loss, by the document it is $ours"
done
# Each statement matters: without it the loss is another.
for fault in norm stretch qkv gate rope heads head; do
  name=llama
  if [[ $fault == norm || $fault == stretch ]]; then name=qwen; fi
  wrong=$(model $name/ckpt/step-* held_out.txt $fault)
  awk -v a="${loss_of[$name]}" -v b="$wrong" 'BEGIN { d = a - b; exit d < 1e-3 && d > -1e-3 }' ||
    fail "the loss does not depend on $fault"
done

sed -n '/^```python$/,/^```$/p' "$document" | sed '/^```/d' > example.py
[[ -s example.py ]] || fail "no example in $document"
"$python" example.py "$checkpoint" > example.log || fail "the example of $document does not run"
grep -q "blocks.1.mlp.gate_up.weight .*(256, 32) float32" example.log || { cat example.log; fail "the example lists no shapes"; }
grep -q "q (4, 4, 8) k (4, 2, 8) v (4, 2, 8)" example.log || { cat example.log; fail "the example's q, k and v"; }

# Every name of both checkpoints is one of the document's, with its numbers replaced.
for name in gpt llama qwen; do
  run 1 inspect $name/ckpt/step-* --all
  grep -oE '^ +[a-z0-9_./-]+\.(weight|bias)' screen.log | tr -d ' '
done | sed -E 's/blocks\.[0-9]+/blocks.N/; s/leaf-[0-9]+/leaf-N/; s|^optimizer/[a-z]+/||' | sort -u > names.txt
(($(wc -l < names.txt) > 15)) || fail "inspect shows too few names"
while read -r name; do
  grep -qF "\`$name\`" "$document" || fail "$name does not stand in the document"
done < names.txt
