# transformer3d probe: every rank is measured, also under emulation, and the file holds what the
# screen shows. A wrong input ends with all its faults and status 78.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
short=(--set hetero.probe_seconds=0.8 --set debug.threads=1)

run 1 probe input.toml "${short[@]}" --output one.json
expect_status 0
expect_text "matmul"
[[ $(grep -c '"node"' one.json) == 1 ]] || fail "one.json does not hold one rank"

# Two ranks on two cores, one of them slower, by emulation.
# On a busy machine the second or third time.
for attempt in 1 2 3; do
  run 2 probe input.toml "${short[@]}" --output two.json --set "mesh.cuboid=[2,1,1]" --set "emulate.slowdown=[1,8]"
  expect_status 0
  expect_text "inside a node"
  python3 - two.json <<'PY' && break
import json, sys
speeds = json.load(open(sys.argv[1]))
fast, slow = (rank["matmul"] for rank in speeds["ranks"])
ratio = slow[-1][1] / fast[-1][1]
print("slower by", ratio)
sys.exit(not (len(fast) >= 1 and 3 < ratio < 24 and speeds["inside"]["alpha_seconds"] > 0))
PY
  ((attempt < 3)) || fail "the file does not hold the speeds of two ranks"
done

# Operators of rank 0's own place, wherever that is; other ranks that are made slower are no emulation of it.
widths() { # PLACE: those of products
  run 2 probe input.toml "${short[@]}" --operators place.json --set mesh.cuboid=[1,2,1] --set mesh.outputs=[1,3] --set "mesh.place=[$1]" \
    --set emulate.slowdown=[1,8]
  expect_status 0
  grep -q '"emulated": false' place.json || fail "rank 0 is not made slower"
  python3 -c 'import json; print(sorted(point["shape"][:3] for point in json.load(open("place.json"))["operators"] if point["kind"] == "matmul"))'
}
first=$(widths 0,1) second=$(widths 1,0)
[[ -n $first && -n $second && $first != "$second" ]] || fail "the same operators at both places: $first"

# More ranks than cores, a cuboid with three axes, Muon's whole matrices, an idle rank.
run 8 probe input.toml "${short[@]}" --set "mesh.cuboid=[2,2,2]" --set optimizer.kind=muon
expect_status 0
[[ $(grep -c ' cpu ' screen.log) == 8 ]] || fail "not eight ranks on the screen"
run 3 probe input.toml "${short[@]}" --set mesh.replicas=2 --set mesh.cuboid=auto
expect_status 0
[[ $(grep -c ' cpu ' screen.log) == 3 ]] || fail "the idle rank was not measured"

run 1 probe
expect_status 64
run 1 probe missing.toml
expect_status 66
run 1 probe input.toml "${short[@]}" --output input.toml/speeds.json
expect_status 74
expect_text "input.toml is no folder"
run 1 probe input.toml "${short[@]}" --output new/folder/speeds.json
expect_status 0
[[ -s new/folder/speeds.json ]] || fail "no folder was made"
# A file that is renamed to the output must not take the place of a pipe or a link.
mkfifo pipe
ln -s pipe to_pipe
ln -s linked.json link
for output in pipe to_pipe; do
  run 1 probe input.toml "${short[@]}" --output $output
  expect_status 74
  expect_text "$output is not a regular file"
done
[[ -p pipe && -L to_pipe ]] || fail "the pipe was replaced"
run 1 probe input.toml "${short[@]}" --output link
expect_status 0
[[ -L link && -s linked.json ]] || fail "the link was replaced"
# Signals that end a training ask a probe to stop, too: it does, or it was nearly done.
for signal in USR1 USR2; do
  "$T3D_BIN" probe input.toml "${short[@]}" > out.log 2>&1 &
  probe=$!
  until grep -q '^SigBlk:.*[4-7a-f]...$' /proc/$probe/status; do sleep 0.01; done # TERM, blocked with them
  kill -$signal $probe
  wait $probe
  status=$?
  ((status == 75 || status == 0)) || fail "$signal ends a probe with $status"
done
run 1 probe input.toml --set hetero.probe_seconds=-1
expect_status 78
expect_text "hetero.probe_seconds"

# What the user states of nodes: ratios instead of measurements, other numbers of ranks refused.
cp input.toml stated.toml
cat >> stated.toml <<'TOML'
[[nodes]]
feature = "absent"
speed = 9
[[nodes]]
name = "*"
ranks = 2
threads = 1
speed = 2
TOML
run 2 probe stated.toml "${short[@]}" --output stated.json --set "mesh.cuboid=[2,1,1]" --set "emulate.slowdown=[1,8]"
expect_status 0
python3 - stated.json <<'PY' || fail "stated speeds were not taken"
import json, sys
first, second = (rank["matmul"] for rank in json.load(open(sys.argv[1]))["ranks"])
sys.exit(first != second)
PY
expect_text 'note: \[\[nodes\]\] 1 (feature = "absent", speed = 9) fits no node; the nodes are '
run 1 probe stated.toml "${short[@]}"
expect_status 78
expect_text "has 1 rank, and its \[\[nodes\]\] says 2"
sed -e 's/speed = 2/speed = 0/' -e '/^ranks = 2/d' stated.toml > zero.toml
run 2 probe zero.toml "${short[@]}"
expect_status 78
expect_text "speed 0"
sed -e 's/speed = 2/speed = -2/' stated.toml > negative.toml
run 2 probe negative.toml "${short[@]}"
expect_status 78
expect_text "negative.toml:.*nodes.speed"
