#!/usr/bin/env bash
# Memory of real runs beside what --dry-run computes, as a table in Markdown (docs/numbers.md):
#
#   bench/memory_shapes.sh [build/cpu/transformer3d]
#
# 20 shapes on 1 to 8 ranks of this machine, two steps each; several minutes. Resident is the largest
# VmHWM of all ranks.
set -u
T3D_SOURCE=$(cd "$(dirname "$0")/.." && pwd)
T3D_BIN=$(realpath "${1:-$T3D_SOURCE/build/cpu/transformer3d}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
. "$T3D_SOURCE/tests/support/job.sh"
make_text 100000
cat > input.toml <<'TOML'
version = 1
[run]
name = "memory"
steps = 2
[model]
preset = "gpt-30m"
context = 256
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 8
micro = 4
[checkpoint]
every_minutes = 0
[debug]
threads = 1
TOML

mib() { awk '{ u["KiB"] = 1 / 1024; u["MiB"] = 1; u["GiB"] = 1024; printf "%.1f\n", $1 * u[$2] }'; }

echo "| ranks | cuboid | input | tensors, run | computed | resident, run | computed | difference |"
echo "|---:|---|---|---:|---:|---:|---:|---:|"
number=0
while read -r ranks cuboid keys; do
  number=$((number + 1))
  sets=(--set "mesh.cuboid=$cuboid")
  for key in $keys; do sets+=(--set "$key"); done
  mpirun -n "$ranks" --oversubscribe "$T3D_BIN" input.toml -d "run$number" "${sets[@]}" > run.log 2>&1 < /dev/null
  line=$(grep 'memory of the largest rank' run.log) || { echo "| $ranks | $cuboid | $keys | failed |"; continue; }
  tensors=$(sed 's/.*rank: \([0-9.]* [KMG]iB\) for tensors.*/\1/' <<< "$line" | mib)
  resident=$(sed 's/.*tensors, \([0-9.]* [KMG]iB\) resident.*/\1/' <<< "$line" | mib)
  "$T3D_BIN" input.toml --dry-run "$ranks" "${sets[@]}" > dry.log 2>&1 < /dev/null
  computed=$(sed -n 's/^memory per rank: \([0-9.]* [KMG]iB\) at most.*/\1/p' dry.log | mib)
  whole=$(sed -n 's/^resident per rank: \([0-9.]* [KMG]iB\) at most.*/\1/p' dry.log | mib)
  awk -v r="$ranks" -v c="$cuboid" -v k="$keys" -v a="$tensors" -v b="$computed" -v x="$resident" -v y="$whole" \
    'BEGIN { printf "| %d | %s | %s | %s MiB | %s MiB | %s MiB | %s MiB | %+.1f %% |\n", r, c, k, a, b, x, y, 100 * (y / x - 1) }'
done <<'SHAPES'
1 [1,1,1]
1 [1,1,1] batch.micro=1
1 [1,1,1] batch.recompute='block'
1 [1,1,1] precision.compute='bf16'
1 [1,1,1] optimizer.kind='muon'
2 [2,1,1]
2 [1,2,1]
2 [1,1,2]
2 [1,1,1] mesh.replicas=2
2 [1,1,1] mesh.replicas=2 aggregate.method='adasum'
4 [2,2,1]
4 [4,1,1] mesh.keep='none'
4 [1,2,2] precision.compute='bf16'
4 [1,1,2] mesh.replicas=2 aggregate.method='adasum'
4 [2,1,2] optimizer.kind='muon'
6 [3,1,2]
8 [2,2,2]
8 [8,1,1]
8 [1,2,4]
8 [2,2,2] model.layers=2 model.hidden=128 model.heads=4 model.ffn=512 model.vocab=256
SHAPES
