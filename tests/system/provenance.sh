# run.json: what it says of lives, and that a run of its input and plan has the same losses, bit for bit.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
# Probed speeds make a plan that the next probe may not make again: the record must hold it.
probed=(--set hetero.speeds=probe --set hetero.probe_seconds=0.2)
run 4 input.toml -d first --set run.steps=8 "${probed[@]}"
expect_status 0
run 4 input.toml -d first --set run.steps=12 "${probed[@]}"
expect_status 0

python3 - first "$T3D_BIN" <<'PY' || fail "run.json"
import json, os, subprocess, sys
folder, program = sys.argv[1:]
run = json.load(open(folder + "/run.json"))
assert run["format"] == 1 and len(run["lives"]) == 2, run.keys()
one, two = run["lives"]
assert [l["life"] for l in (one, two)] == [1, 2] and [l["first_step"] for l in (one, two)] == [0, 8]
assert one["program"] == two["program"] and len(run["programs"]) == 1
assert len(run["plans"]) == 1 and len(run["inputs"]) == 2 and len(run["data"]) == 1 and len(run["hosts"]) == 1
built = run["programs"][one["program"]]
said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
assert all(built[key] in said for key in ("version", "commit", "compiler", "build_type")), (said, built)
notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True).stdout
assert built["build"] is None or f"Build ID: {built['build']}" in notes, (built["build"], notes)
assert ("Build ID" in notes) == (built["build"] is not None)
assert "-O" in built["flags"] and built["mpi"] and any("hdf5" in file for file in built["libraries"])
host = run["hosts"][one["hosts"][0]]
assert host["name"] == os.uname().nodename and host["cores"] == os.cpu_count() and host["memory_bytes"] > 2**20, host
ranks = run["ranks"][one["ranks"]]
assert ranks["count"] == 4 and ranks["devices"] == ["cpu"] * 4 and ranks["hosts"] == [0] * 4
assert one["shared_cores"] == (os.cpu_count() < 4) or host["quota_cores"]
assert one["links"]["inside"]["alpha_seconds"] > 0 and one["links"]["between"] is None, one["links"]
assert one["matmul_rate"] > 0 and one["vendor_peak"] is None and not one["emulated"]
assert run["inputs"][one["input"]].count("steps = 8 ") == 1 and run["inputs"][two["input"]].count("steps = 12 ") == 1
assert run["plans"][one["plan"]] == open(folder + "/plan.toml").read()
assert one["data_hash"] in run["data"][one["data"]] and "text.txt" in run["data"][one["data"]]
assert one["command"][1] == "input.toml" and one["folder"] == os.getcwd()
for life, steps in ((one, 8), (two, 4)):
    end = life["end"]
    assert (end["code"], end["steps"], end["plan"]) == (0, steps, life["plan"]), end
    assert end["predicted_bytes"] == {a: b for a, b in end["counted_bytes"].items() if a != "checkpoint"}, end
    assert end["resident_bytes"] > end["tensor_bytes"] > 0
    assert (end["cpu_joules"] is None) == (end["why_no_energy"] is not None), end
    predicted = life["predicted_step_bytes"]
    assert sum(predicted.values()) > 0 and all(end["predicted_bytes"][a] == steps * predicted[a] for a in predicted), (predicted, end)
    assert end["energy_steps"] == steps
# What docs/17-scaling-studies.md says to do.
life = run["lives"][0]
open("again.toml", "w").write(run["inputs"][life["input"]])
open("plan.toml", "w").write(run["plans"][life["plan"]])
PY
run 4 again.toml -r never -d again --set mesh.plan=plan.toml
expect_status 0
head -n 8 first/log.jsonl > cut.jsonl && cp cut.jsonl first/log.jsonl
same_losses first again 0
[[ -d again/ckpt ]] || fail "the checkpoints of the run that reproduces are elsewhere"
cmp first/plan.toml again/plan.toml || fail "another plan"

# A life that is killed has no end; what is no record is put aside, and costs the run a warning.
python3 - first <<'PY' || fail "the same losses could have come from anywhere"
import json, sys
losses = [json.loads(line)["loss"] for line in open("first/log.jsonl")]
assert len(set(losses)) == 8
PY
printf '{"lives"' > again/run.json
run 4 input.toml -d again --set run.steps=10
expect_status 0
expect_text "run.json was no record of a run (it is no JSON); it is now again/run.json.damaged, and a new one begins"
[[ $(cat again/run.json.damaged) == '{"lives"' ]] || fail "the damaged record was written over"
# JSON of other kinds: who reads says so, and a life puts it aside.
mkdir study && cp -r again study/run
for odd in '{"format": 1, "lives": [1, 2]}' '{"format": 99, "lives": []}' '[1, 2]'; do
  echo "$odd" | tee study/run/run.json > again/run.json
  for reader in "status again" "report again -o page.html"; do
    run 1 $reader
    expect_status 0
    expect_text "again/run.json is no record of a run: "
  done
  run 1 scaling --collect study
  expect_status 74
  expect_text "study/run/run.json: is no record of a run: "
done
run 4 input.toml -d again --set run.steps=12
expect_status 0
expect_text "run.json was no record of a run (it is a JSON array, no object); it is now again/run.json.damaged-2"
[[ $(cat again/run.json.damaged-2) == '[1, 2]' ]] || fail "the odd record was written over"
python3 -c 'import json; (life,) = json.load(open("again/run.json"))["lives"]; assert life["end"]["code"] == 0' || fail "no new record"
rm again/run.json && mkdir again/run.json
run 4 input.toml -d again --set run.steps=14
expect_status 0
expect_text "warning: run.json does not say all of this life"
