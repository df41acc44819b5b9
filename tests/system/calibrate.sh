# transformer3d calibrate: what two ranks measure is a file that is read again, other classes are added to
# it, data sheets stand beside measurements, and nothing is left behind. Broken files: all faults, status 78.
. "$T3D_SOURCE/tests/support/job.sh"

mkdir disk
run 2 calibrate --seconds 3 --class fast --folder disk -o c.toml
expect_status 0
expect_text "not measured"
expect_text "between nodes: all ranks are on one node"
[[ -z $(ls -A disk) ]] || fail "files of the measurement are left: $(ls -A disk)"
for line in 'name = "fast"' 'ranks_per_node = 2' 'calibrated = "measured"' 'kind = "matmul"' 'format = "bf16"' \
  'verb = "all_reduce"' 'name = "node"'; do
  grep -q -- "$line" c.toml || fail "c.toml does not say $line"
done
(($(grep -c '^\[\[operator\]\]' c.toml) == 20)) || fail "not ten operators in two formats"
awk '/^alpha_seconds = |^beta_seconds_per_byte = /{ if ($3 <= 0 || $3 > 1e-2) exit 1 }' c.toml || fail "links"

# Ranks without a core of their own are no measure of ranks that have one, and that is said.
whole=$T3D_BIN
use_one_core
run 1 calibrate --class $'a\nb' -o line.toml
expect_status 64
expect_text "is not one line of UTF-8"
run 2 calibrate --seconds 1 --formats fp32 --class crowd -o crowd.toml
expect_status 0
expect_text "there are more ranks than cores"
T3D_BIN=$whole
run 1 calibrate --seconds 1 --formats fp32 --class alone -o alone.toml
expect_status 0
grep -q "more ranks than cores" out.log && fail "one rank shares no core"

# Emulated slower ranks: each a node, a class for each factor, operators and launches so many times longer.
run 2 calibrate --seconds 4 --formats fp32 --slowdown 1,6 -o emulated.toml
expect_status 0
grep -q '^calibrated_by = .*emulated' emulated.toml || fail "not marked as emulated"
expect_text "of 10 operators spread by more than 20 %, measured twice: too few of their calls fitted into 4 s; measure longer (--seconds)"
# They are marked in the file, which a reader takes: those that the screen names, and no others.
(($(grep -c '^unreliable = true' emulated.toml) == $(grep -c ' unreliable$' screen.log))) || fail "marks of the file and of the screen differ"
grep -q '^unreliable = true' emulated.toml || fail "nothing is marked"
python3 - << 'EOF' || fail "six times slower is not"
import statistics, tomllib
cluster = tomllib.load(open("emulated.toml", "rb"))
assert [(one["name"], one["nodes"], one["ranks_per_node"]) for one in cluster["class"]] == [("x1", 1, 1), ("x6", 1, 1)]
assert [level["name"] for level in cluster["level"]] == ["network"]
for kind in ("activation", "residual", "optimizer"):
    # Their shapes differ: seconds of a byte.
    rates = {table["class"]: table["terms"][1] for table in cluster["operator"] if table["kind"] == kind}
    assert 3 < rates["x6"] / rates["x1"] < 40, (kind, rates)
EOF
run 2 calibrate --seconds 1 --slowdown 2 -o none.toml
expect_status 64
expect_text "has 1 factor, and there are 2 ranks"
[[ ! -e none.toml ]] || fail "a file was written"

# Another class beside it; what a person wrote about the first one stays.
sed -i '0,/^price_per_node_hour = 0 /s//price_per_node_hour = 2.5 /' c.toml
run 1 calibrate --seconds 1 --formats fp32 --class slow --add c.toml -o d.toml
expect_status 0
grep -q '^price_per_node_hour = 2.5 ' d.toml || fail "the price is lost"
(($(grep -c '^\[\[class\]\]' d.toml) == 2)) || fail "not two classes"
(($(grep -c '^\[\[operator\]\]' d.toml) == 30)) || fail "the operators of a class are lost"
run 1 calibrate --preset a100-80g,ib-hdr --add d.toml -o d.toml
expect_status 0
(($(grep -c 'calibrated = "uncalibrated (data sheet)"' d.toml) == 3)) || fail "data sheets are not marked"
(($(grep -c '^calibrated = "measured"' d.toml) >= 3)) || fail "a data sheet replaced a measurement"

# What is wrong with a file is told at once, before anything is measured.
sed -i 's/^nodes = 1 .*that a job.*/nodes = -1/; s/^ranks_per_node = 2 /ranks_per_nodes = 2 /' d.toml
run 2 calibrate --add d.toml
expect_status 78
expect_text "d.toml:.*class.nodes cannot be -1"
expect_text "did you mean class.ranks_per_node?"
run 1 calibrate --add missing.toml
expect_status 66
run 1 calibrate --formats fp33
expect_status 64
run 1 calibrate --preset a101
expect_status 64
[[ ! -e cluster.toml ]] || fail "a file was written"

# What others write while this measures is kept, and so is a measurement that cannot be put into their file.
run 1 calibrate --preset h100 -o shared.toml
(sleep 0.7; "$T3D_BIN" calibrate --preset l40s --add shared.toml -o shared.toml > other.log 2>&1) &
run 1 calibrate --seconds 2 --formats fp32 --class slow --threads 1 --add shared.toml -o shared.toml
expect_status 0
wait $!
for class in h100 l40s slow; do grep -q "^name = \"$class\"" shared.toml || fail "class $class is lost"; done
expect_text "note: shared.toml has changed in the meantime"
cp shared.toml edited.toml
(sleep 0.7; echo 'nodes = 3' >> edited.toml) &
run 1 calibrate --seconds 2 --formats fp32 --class third --threads 1 --add edited.toml -o edited.toml
expect_status 78
wait $!
expect_text "what was measured is in edited.toml.measured"
grep -q '^name = "third"' edited.toml.measured || fail "the measurement is lost"
tail -n 1 edited.toml | grep -q 'nodes = 3' || fail "a person's edit is lost"
compgen -G '*.lock*' && fail "a lock is left"

# On a full disk the measurement goes to standard output, as a file that is read again, with what --add knows.
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
export IO_FAULT_PREFIX=$PWD/full/ IO_FAULT_AT=1 IO_FAULT_MODE=full
mkdir full
LD_PRELOAD=$shim run 1 calibrate --seconds 1 --formats fp32 --class rescued --threads 1 --folder disk --add shared.toml -o full/c.toml
unset IO_FAULT_PREFIX IO_FAULT_AT IO_FAULT_MODE
expect_status 74
expect_text "full/c.toml.*: No space left on device"
expect_text "what was measured stands on standard output"
[[ -z $(ls -A full) ]] || fail "files are left on the full disk: $(ls -A full)"
cp screen.log printed.toml
run 1 calibrate --preset a100-40g --add printed.toml -o rescued.toml
expect_status 0
for class in l40s rescued; do grep -q "^name = \"$class\"" rescued.toml || fail "class $class is lost"; done

# Who holds a lock is said while it is waited for; nothing of one that waited is left.
waits() { # SIGNAL: a call that waits for the lock of another host is ended by it
  "$T3D_BIN" calibrate --preset h100 -o held.toml > out.log 2>&1 &
  for _ in $(seq 600); do grep -q "waiting: .*held.toml.lock is held by process 7 on elsewhere, Slurm job 815, run calibrate" out.log && break; sleep 0.05; done
  expect_text "waiting: .*held.toml.lock is held by process 7 on elsewhere, Slurm job 815"
  compgen -G 'held.toml.lock.*' > /dev/null || fail "no draft of a lock"
  kill -"$1" $!
  wait $! 2> /dev/null
}
echo '{"host":"elsewhere","boot":"b","processes":"p","pid":7,"started":1,"cluster":"","job":"815","restarts":0,"run":"calibrate","token":"ab"}' > held.toml.lock
waits TERM
compgen -G 'held.toml.lock.*' && fail "TERM leaves a draft"
waits KILL
rm held.toml.lock
run 1 calibrate --preset h100 -o held.toml
expect_status 0
compgen -G 'held.toml.lock*' && fail "the draft of a killed process stays"

# A folder that is missing is made; where that cannot be is said before anything is measured.
run 1 calibrate --preset h100 -o new/folder/c.toml
expect_status 0
[[ -s new/folder/c.toml ]] || fail "no folder was made"
run 1 calibrate --seconds 100 -o c.toml/d/e.toml
expect_status 74
expect_text "c.toml is no folder"

# The example of the documents is such a file.
sed -n '/^```toml$/,/^```$/p' "$T3D_SOURCE/docs/15-cluster-file.md" | sed '1d;$d' > example.toml
run 1 calibrate --preset h100 --add example.toml -o f.toml
expect_status 0
grep -q '^hazard_scale_hours = 40 ' f.toml || fail "the example's hazard is lost"
