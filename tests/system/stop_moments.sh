# slow: minutes, and 6 GB of disk
# A run that evaluates, appends to a log of 5 GB and deletes checkpoints on a slow disk is asked to stop at random
# moments (T3D_MOMENTS of them, drawn by T3D_SEED): it starts and stops soon, within two steps plus the save, and in the
# end nothing is lost, neither a step nor a bit.
. "$T3D_SOURCE/tests/support/job.sh"
moments=${T3D_MOMENTS:-5}
seed=${T3D_SEED:-1}
bytes=${T3D_LOG_BYTES:-5000000000}
before=${T3D_STEPS:-10000} # steps that the long log has; 20,000 take more than two minutes on a busy machine
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
make_text 2000000
mv text.txt valid.txt
make_text 20000
make_input
# Steps of some milliseconds; an evaluation takes longer than ten of them.
small=(--set model.layers=1 --set model.hidden=16 --set model.heads=2 --set model.context=8)
whole=(input.toml "${small[@]}" --set run.steps=1000000 --set run.pause_at=$before --set data.valid=valid.txt
  --set checkpoint.every_steps=$before --set eval.every_steps=1000000)
run 1 "${whole[@]}" -d long
expect_status 75
cp -r long undisturbed
# Lines as long as those of some hundred ranks: a reader has to go through them.
python3 - long/log.jsonl "$bytes" <<'PY'
import os, sys
path, size = sys.argv[1], int(sys.argv[2])
lines = open(path, "rb").read().splitlines()
more = b',"pad":"' + b"x" * max(0, (size - os.path.getsize(path)) // len(lines) - 10) + b'"}\n'
with open(path, "wb") as file:
    for line in lines:
        file.write(line[:-1] + more)
PY
rm -f long/log.index
ls -l long/log.jsonl

python3 - "$T3D_BIN" "$shim" "$moments" "$seed" "$PWD" input.toml "${small[@]}" --set data.valid=valid.txt <<'PY' || fail "see above"
# Each life: two ranks, asked to stop at a moment drawn at random; at every second one it is all ranks that are asked.
# Every third life has slow steps, so that those after the question can be counted: the log is written beside the steps,
# and some ms later. Its start and its end are slow, too, and not timed.
import json, os, random, signal, statistics, subprocess, sys, time
program, shim, moments, seed, here = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
random.seed(seed)
environment = dict(os.environ, LD_PRELOAD=shim, IO_FAULT_PREFIX=here + "/long", IO_FAULT_EVERY="3")
command = ["mpirun", "-n", "2", "--oversubscribe", "-x", "LD_PRELOAD", "-x", "IO_FAULT_PREFIX", "-x", "IO_FAULT_EVERY",
           program, *sys.argv[6:], "-d", "long", "--set", "run.steps=1000000", "--set", "checkpoint.every_steps=7",
           "--set", "checkpoint.keep=2", "--set", "eval.every_steps=10", "--set", "mesh.cuboid=[2,1,1]", "-q"]
fast = ["--set", "eval.batches=2000"]
slow = ["--set", "eval.batches=50", "--set", "emulate.slowdown=[120,120]"]
late = 0.05  # of lines in the log
beside = ["--set", "checkpoint.asynchronous=on"]  # at every second life a process writes them

def ranks_of(launcher):
    children = f"/proc/{launcher}/task/{launcher}/children"
    return [int(pid) for pid in open(children).read().split()]

def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0

def until(seconds, what, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.01)

def size():
    return os.path.getsize("long/log.jsonl")

def last_step():
    lines = subprocess.run(["tail", "-n", "1", "long/log.jsonl"], capture_output=True).stdout
    return json.loads(lines)["step"]

starts, stops, memory, steps_after, step_seconds = [], [], [], [], []
for number in range(moments):
    size_before, began = size(), time.monotonic()
    counts = number % 3 == 1
    words = command + beside * (number // 2 % 2) + (slow if counts else fast)
    job = subprocess.Popen(words, env=environment, stdout=open("life.log", "w"), stderr=subprocess.STDOUT)
    until(100, "the first line of a life", lambda: size() > size_before or job.poll() is not None)
    start = time.monotonic() - began
    ranks = ranks_of(job.pid)
    memory.append(max(map(resident, ranks)))
    time.sleep(random.uniform(0, 3))
    asked = time.monotonic()
    for rank in ranks if number % 2 else [random.choice(ranks)]:
        os.kill(rank, signal.SIGTERM)
    time.sleep(late)
    step_asked = last_step()  # or one later, where it ended just now
    status = job.wait(timeout=60)
    stop = time.monotonic() - asked
    end = json.load(open("long/exit.json"))
    last = last_step()
    if status != 75 or end["step"] != end["checkpoint"] or last != end["step"]:
        print(open("life.log").read()[-4000:])
        sys.exit(f"life {number}: code {status}, {end}, last line of step {last}")
    if counts:
        steps_after.append(last - step_asked)
        line = subprocess.run(["tail", "-n", "1", "long/log.jsonl"], capture_output=True).stdout
        step_seconds.append(json.loads(line)["seconds"])
    else:
        starts.append(start)
        stops.append(stop)
    after = f"{steps_after[-1]} steps of {step_seconds[-1]:.2f} s after the question, " if counts else ""
    print(f"life {number}: step {end['step']}, start {start:.2f} s, {memory[-1]:.0f} MiB, {after}stop {stop:.2f} s", flush=True)
print(f"seed {seed}: {moments} lives; start: median {statistics.median(starts):.2f} s, max {max(starts):.2f} s; "
      f"{max(memory):.0f} MiB; stop: median {statistics.median(stops):.2f} s, max {max(stops):.2f} s; "
      f"steps after the question: max {max(steps_after, default=0)} in {len(steps_after)} lives")
assert min(step_seconds, default=1) > late, "steps are too fast to be counted"
assert max(steps_after, default=0) <= 2, "it went on for more than two steps"
assert max(starts) < 5 and max(memory) < 200 and max(stops) < 8, "too slow or too large"
PY
step=$(tail -n 1 long/log.jsonl | sed 's/.*"step":\([0-9]*\),.*/\1/')
run 2 input.toml "${small[@]}" -d undisturbed --set run.steps=1000000 --set run.pause_at="$step" --set "mesh.cuboid=[2,1,1]" \
  --set checkpoint.every_minutes=0 --set data.valid=valid.txt --set eval.every_steps=1000000
expect_status 75
for folder in long undisturbed; do tail -n +$((before + 1)) $folder/log.jsonl > lines && mkdir -p tail_$folder && mv lines tail_$folder/log.jsonl; done
same_losses tail_undisturbed tail_long 0
[[ $(tail -n 1 tail_undisturbed/log.jsonl | sed 's/.*"step":\([0-9]*\),.*/\1/') == "$step" ]] || fail "another last step"
[[ $(find long/ckpt -maxdepth 1 -name 'step-*' | wc -l) -le 3 ]] || fail "checkpoints were not deleted"
rm -f long/log.jsonl # of 5 GB
