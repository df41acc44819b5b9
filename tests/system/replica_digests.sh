# Two replicas whose kernels use different instruction sets keep the same weights to the bit; where products
# of matrices in the update round otherwise on one of them, the run sees it, says so and stops with a checkpoint.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 30000
make_input
sets=$(grep -o -m1 -w -e avx512vl /proc/cpuinfo | head -n 1)
best=v4
[[ -n $sets ]] || best=v3
grep -q -w avx2 /proc/cpuinfo || { echo "SKIPPED: one instruction set only"; exit 77; }
common=(input.toml --set mesh.replicas=2 --set run.steps=201 --set checkpoint.every_steps=1000 --set log.every_steps=100)

# unlike DIR ENVIRONMENT-OF-THE-SECOND... -- OPTIONS...
unlike() {
  local dir=$1
  shift
  local second=()
  while [[ $1 != -- ]]; do second+=("$1"); shift; done
  shift
  timeout -k 5 120 mpirun --oversubscribe -n 1 env T3D_ISA="$best" "$T3D_BIN" "${common[@]}" -d "$dir" "$@" \
    : -n 1 env "${second[@]}" "$T3D_BIN" "${common[@]}" -d "$dir" "$@" > screen.log 2> error.log
  status=$?
  cat screen.log error.log > out.log
}

for compute in fp32 bf16; do
  for kind in adamw sgd lamb muon; do
    unlike "$kind-$compute" T3D_ISA=v2 -- --set optimizer.kind=$kind --set precision.compute=$compute
    expect_status 0
    grep -q "the weights of replica" out.log && fail "$kind in $compute: replicas drift apart"
  done
done

# Another library's rounding. Where it happens to be the same, there is nothing to see.
unlike rounding ONEDNN_MAX_CPU_ISA=SSE41 -- --set optimizer.kind=muon
if ((status != 0)); then
  expect_status 75
  expect_text "the weights of replica 1 are not those of replica 0: a processor or memory is at fault; no state is that of most, so the run stops"
  [[ $(sed -n 's/.*"step":\([0-9]*\),.*/\1/p' rounding/log.jsonl | tail -n 1) == 100 ]] || fail "not seen in step 100"
  run 2 "${common[@]}" --set optimizer.kind=muon -d rounding
  expect_status 0
fi
