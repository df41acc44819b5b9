# The claim of Adasum at small scale: with the learning rate of one replica it needs far fewer steps
# than the mean, where the sum diverges; uneven batches and changing members cost it next to nothing.
# The whole tables: bench/t3d_bench_adasum, docs/results/adasum-digits.md. Runs are functions of
# their seeds up to rounding, which differs with the processor: hence medians, and bounds with room.
. "$T3D_SOURCE/tests/support/job.sh"

# The median of the steps to the target; "fails" is more than any number.
steps() { # options of t3d_bench_adasum run
  local line
  line=$("$T3D_BENCH_ADASUM" run "$@") || fail "t3d_bench_adasum run $*"
  echo "$line steps: $*" >&2
  line=${line%% *}
  echo "${line/fails/1000000}"
}
expect() { # condition of numbers
  awk "BEGIN { exit !($1) }" || fail "not so: $1"
}

"$T3D_BENCH_ADASUM" law > out.log || fail "t3d_bench_adasum law"
expect "$(sed -n 's/largest deviation from the law \([0-9.]*\) %/\1/p' out.log) < 2"

# Many replicas, nothing retuned.
mean=$(steps --method mean --replicas 16 --seeds 3)
adasum=$(steps --method adasum --replicas 16 --seeds 3)
expect "$mean < 1500 && $adasum <= 115 && $adasum <= 0.5 * $mean"
expect "$(steps --method adasum --replicas 64 --seeds 3) <= 70"
expect "$(steps --method sum --replicas 64 --seeds 5 --cap 500) > 500"

# Uneven batches of 8 replicas, as many samples as in the even ones.
even=$(steps --method adasum --replicas 8 --seeds 5)
expect "$even <= 130"
uneven=(--replicas 8 --batches 4,40,4,32,8,16,8,16 --seeds 5)
expect "$(steps --method adasum "${uneven[@]}") <= 1.15 * $even"
expect "$(steps --method linear "${uneven[@]}") <= 1.15 * $even"
expect "$(steps --method classical "${uneven[@]}" --cap 300) > 1.15 * $even"

# Members that change at every step, then their batches too.
for batches in "--batches 16" "--batches 4,8,16,32 --draw"; do
  elastic=(--replicas 1..32 $batches --seeds 3)
  mean=$(steps --method mean "${elastic[@]}")
  adasum=$(steps --method adasum "${elastic[@]}")
  expect "$mean < 1500 && $adasum <= 0.45 * $mean"
done
