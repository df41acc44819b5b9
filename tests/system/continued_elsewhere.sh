# A continued run keeps its plan where the ranks are the same; on other nodes, with less memory, or where
# the input says other things of speeds, it plans anew and says why. The losses are those of one run.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
common=(input.toml --set model.layers=4 --set model.hidden=192 --set hetero.probe_seconds=0.2 --set run.steps=4
  --set schedule.kind=constant --set optimizer.lr=3e-4 --set checkpoint.every_steps=2 --set debug.threads=1)
two=("${common[@]}" --set "mesh.cuboid=[2,1,1]" --set batch.micro=0)
slabs() { sed -n 's/.*"slab_sequences":\[\([0-9,]*\)\].*/\1/p' "$1/log.jsonl" | tail -n 1; }
from_the_middle() { rm -rf "$1" && cp -r whole "$1" && rm -rf "$1/ckpt/step-00000004"; } # of the run in `whole`
expect_kept() { # DIR SLABS
  expect_status 0
  expect_text "resumed from"
  grep -q "made anew" out.log && fail "the plan of $1 was not kept"
  [[ $(slabs "$1") == "$2" ]] || fail "$1: $(slabs "$1") sequences instead of $2"
  same_losses whole "$1" 1e-5
}
expect_anew() { # DIR SLABS TEXT; SLABS may be a pattern
  expect_status 0
  expect_text "resumed from"
  expect_text "plan: made anew: $3"
  [[ $(slabs "$1") == $2 ]] || fail "$1: $(slabs "$1") sequences instead of $2"
  same_losses whole "$1" 1e-4
}

# One rank has room for a small part of the weights only.
run 2 "${two[@]}" -d whole --set hetero.speeds=probe --set "emulate.memory_mib=[90,30]"
expect_status 0
from_the_middle same
run 2 "${two[@]}" -d same --set hetero.speeds=probe --set "emulate.memory_mib=[99,31]"
expect_kept same "$(slabs whole)"
from_the_middle swapped
run 2 "${two[@]}" -d swapped --set hetero.speeds=probe --set "emulate.memory_mib=[30,90]"
expect_anew swapped "*" "rank 0 at d=0 .* needs .* and has 30 MiB"

# What the input says of speeds. The first rank of fast.json is the faster one, by three.
speeds() { # FIRST SECOND
  for rate in "$1" "$2"; do
    printf '%s{"matmul": %se9, "attention": %se9, "whole": [], "streamed": %se9}' "${comma:-}" "$rate" "$rate" "$rate"
    local comma=", "
  done | sed 's/^/{"ranks": [/; s/$/]}/'
}
rm -rf whole
run 2 "${two[@]}" -d whole
expect_status 0
speeds 30 10 > speeds.json
from_the_middle file
run 2 "${two[@]}" -d file --set hetero.speeds=file --set hetero.file=speeds.json
expect_anew file 6,2 'hetero.speeds is "file" and was "equal"'
# The probe finds the ranks as they are in the step that follows.
from_the_middle slower
run 2 "${two[@]}" -d slower --set hetero.speeds=probe --set hetero.probe_seconds=0.8 \
  --set 'emulate.schedule=["3:1:40"]'
expect_anew slower "[678],*" 'hetero.speeds is "probe" and was "equal"'
rm -rf whole
run 2 "${two[@]}" -d whole --set hetero.speeds=file --set hetero.file=speeds.json
expect_status 0
from_the_middle same
mv speeds.json gone.json # a plan that is kept needs no file
run 2 "${two[@]}" -d same --set hetero.speeds=file --set hetero.file=speeds.json
expect_kept same 6,2
speeds 10 30 > speeds.json
from_the_middle file
run 2 "${two[@]}" -d file --set hetero.speeds=file --set hetero.file=speeds.json
expect_anew file 6,2 "hetero.file holds other speeds"
[[ $(grep ^place file/plan.toml) == "place = [1, 0]" ]] || fail "the plan does not follow the new file: $(grep ^place file/plan.toml)"

# Other nodes, where this user may give a process another host name.
unshare --uts hostname any 2> /dev/null || exit 0
cat > on_nodes <<'SH'
#!/bin/bash
names=($NODES)
exec unshare --uts bash -c 'hostname "$1"; shift; exec "$@"' - "${names[OMPI_COMM_WORLD_RANK]}" "$PROGRAM" "$@"
SH
chmod +x on_nodes
export PROGRAM=$T3D_BIN NODES="new old"
T3D_BIN=$PWD/on_nodes
printf '[[nodes]]\nname = "old*"\nspeed = 0.25\n' >> input.toml
rm -rf whole
run 2 "${two[@]}" -d whole
expect_status 0
from_the_middle same
run 2 "${two[@]}" -d same
expect_kept same 7,1
NODES="old2 new"
from_the_middle other
run 2 "${two[@]}" -d other
expect_anew other 7,1 "rank 0 is on old2 and was on new"
[[ $(grep ^place other/plan.toml) == "place = [1, 0]" ]] || fail "the plan does not follow the nodes: $(grep ^place other/plan.toml)"
NODES="new old"
sed -i 's/^speed = .*/speed = 1/' input.toml
from_the_middle stated
run 2 "${two[@]}" -d stated
expect_anew stated 4,4 "..nodes.. has changed"
