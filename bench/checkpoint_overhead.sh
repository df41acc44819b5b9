#!/usr/bin/env bash
# What checkpoints beside the steps cost: wall time with one every 15 s over wall time without any, and the seconds
# that the steps wait for one beside those of a plain copy of the state. One rank with one thread, so that a second core is free.
#
#   bench/checkpoint_overhead.sh PROGRAM [PAIRS]     5 pairs A B A B of about 35 s each
set -euo pipefail
program=$(realpath "$1")
pairs=${2:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
head -c 300000 /dev/urandom | base64 > text.txt
cat > input.toml <<'TOML'
version = 1
[run]
name = "t"
steps = 330
[model]
layers = 2
hidden = 512
heads = 8
context = 64
vocab = 8192
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 4
[balance]
kind = "off"
[hetero]
speeds = "equal"
[log]
every_steps = 50
[debug]
threads = 1
TOML
# bytes per second of memcpy, the best of 5, of as many bytes as the state has
copy_rate() {
  python3 - "$1" <<'PY'
import sys, time
size = int(sys.argv[1])
a, b = bytearray(size), bytearray(size)
best = 0
for _ in range(6):
    start = time.perf_counter()
    memoryview(a)[:] = memoryview(b)
    best = max(best, size / (time.perf_counter() - start))
print(f"{best:.0f}")
PY
}
seconds() { # name, minutes between checkpoints: from the first step to the end
  "$program" input.toml -d "$1" --set checkpoint.every_minutes="$2" > "$1.log" 2>&1
  python3 - "$1/lives.jsonl" <<'PY'
import json, sys
life = json.loads(open(sys.argv[1]).read().splitlines()[-1])
print(life["ended"] - life["started"] - life["first_step_seconds"])
PY
}
for ((pair = 0; pair < pairs; ++pair)); do
  without=$(seconds "a$pair" 0)
  with=$(seconds "b$pair" 0.25)
  echo "$without $with" | awk '{ printf "without %.1f s, with %.1f s: %.2f %% more\n", $1, $2, 100 * ($2 / $1 - 1) }'
done
bytes=$(python3 -c "import json,glob; m=json.load(open(sorted(glob.glob('b0/ckpt/step-*/MANIFEST.json'))[-1]));
print(sum(4 * __import__('math').prod(t['shape']) for t in m['tensors'].values()))")
rate=$(copy_rate "$bytes")
echo "state $bytes bytes; memcpy $rate bytes/s: $(echo "$bytes $rate" | awk '{ print $1 / $2 }') s"
grep -h 'beside the steps' b*/run.log
