# The commands around training: tokenize, eval, generate, inspect, --dry-run, --defaults, --version.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
run 1 --version && expect_status 0
run 1 --defaults && expect_status 0
run 1 --explain optimizer && expect_text "optimizer.lr"

run 1 tokenize text.txt -o bpe --kind bpe --vocab 300 --valid 0.1
expect_status 0
run 4 input.toml -d b --set "mesh.cuboid=[1,2,2]" --set "data.train='bpe-train.h5'" \
  --set "data.valid='bpe-valid.h5'" --set data.format=auto --set model.vocab=0 --set run.steps=30 --set "emulate.slowdown=[1,1,1,1.01]" --set 'emulate.schedule=["20:2:1.01"]' \
  --set "emulate.memory_mib=[900,900,900,900]"
expect_status 0
expect_text "bits per byte"
grep -o 'bits per byte [0-9.]*' out.log | tail -n 1 > trained.txt

# Evaluation on any mesh, of a run with emulated ranks, gives the trainer's last figure; generation the same text on any mesh.
run 1 eval b bpe-valid.h5
expect_status 0
expect_text "$(cat trained.txt)"
run 6 eval b/ckpt/step-00000030 bpe-valid.h5 --set "mesh.cuboid=[1,3,2]"
expect_status 0
expect_text "$(cat trained.txt)"
run 1 generate b --prompt "the old king" --tokens 20 --greedy
expect_status 0
expect_text "the old king"
cp screen.log greedy.txt
run 4 generate b --prompt "the old king" --tokens 20 --greedy --set "mesh.cuboid=[2,1,2]"
cmp -s screen.log greedy.txt || fail "the text depends on the mesh"
# Ranks without a place may watch a training, not these.
for command in "eval b bpe-valid.h5 --set batch.micro=0" "generate b --tokens 1 --set batch.sequences=3"; do
  run 4 $command --set mesh.replicas=3
  expect_status 78
  expect_text "mesh.replicas = 3 leaves 1 of 4 ranks idle"
done
run 1 generate b --prompt "the" --tokens 20 --temperature 0.9 --top-k 20 --top-p 0.9 --seed 3
cp screen.log sample.txt
run 1 generate b --prompt "the" --tokens 20 --temperature 0.9 --top-k 20 --top-p 0.9 --seed 3
cmp -s screen.log sample.txt || fail "the same seed gives another text"
run 1 inspect b/ckpt/step-00000030 --verify
expect_status 0
(($(wc -l < screen.log) == 10)) || fail "inspect prints $(wc -l < screen.log) lines"
expect_text "step-00000030: step 30, .*, verified"
more=$(sed -n '$s/.* and \([0-9]*\) more lines: --all$/\1/p' screen.log)
run 1 inspect b/ckpt/step-00000030 --all
expect_status 0
(($(wc -l < screen.log) == 9 + more)) || fail "$(wc -l < screen.log) lines in all, and $more more than 9"
expect_text "blocks.1.attn.qkv.weight"

# Dry runs: formula and count agree (else exit code 70), for jobs of any size.
for job in "8 [2,2,2]" "64 [4,4,4]" "6 [3,1,2]" "65536 [256,16,16]"; do
  read -r ranks cuboid <<< "$job"
  run 1 input.toml --dry-run "$ranks" --set "mesh.cuboid=$cuboid" --set model.preset=gpt2-124m --set batch.sequences=512 \
    --set model.hidden=768 --set model.heads=12 --set model.layers=2
  expect_status 0
  expect_text "memory per rank"
done
run 1 input.toml --dry-run 64
expect_status 0

# The memory of the dry run is that of the run, within 10 %; the state is total / ranks within 3 %.
for mesh in "1 [1,1,1]" "8 [2,2,2]"; do
  read -r ranks cuboid <<< "$mesh"
  big=(--set "mesh.cuboid=$cuboid" --set model.hidden=256 --set model.layers=3 --set model.context=64 --set run.steps=3
    --set debug.threads=1)
  run "$ranks" input.toml -d "memory$ranks" "${big[@]}"
  expect_status 0
  measured=$(sed -n 's/.*"memory_bytes":\([0-9]*\).*/\1/p' "memory$ranks/log.jsonl" | tail -n 1)
  run 1 input.toml --dry-run "$ranks" "${big[@]}"
  expect_status 0
  sed -n 's/^memory per rank: \([0-9.]*\) \([KMG]iB\) at most.*/\1 \2/p' out.log |
    awk -v m="$measured" '{ u["KiB"] = 1024; u["MiB"] = 1048576; u["GiB"] = 1073741824; p = $1 * u[$2]; print "predicted", p, "measured", m;
      exit !(p > 0.9 * m && p < 1.1 * m) }' || fail "memory of $ranks ranks: predicted and measured differ"
  sed -n 's/.* at most, \([-0-9.]*\) % above total.*/\1/p' out.log | awk '{ n = 1; exit !($1 < 3) } END { exit !n }' ||
    fail "state of $ranks ranks: $(grep 'parameters per rank' out.log)"
done

# A job script of an input: for bash, with the run's own paths; a wrong input is refused.
"$T3D_BIN" input.toml --write-sbatch 8 -d "runs/a b" --set run.steps=7 > job.sbatch 2> out.log || fail "--write-sbatch"
bash -n job.sbatch || fail "bash does not read the job script"
grep -qx "#SBATCH --ntasks=8" job.sbatch && grep -qx "run='runs/a b'" job.sbatch && grep -q "^program=/" job.sbatch ||
  fail "the job script lacks its own lines"
"$T3D_BIN" --write-sbatch input.toml > job.sbatch || fail "--write-sbatch without a number"
# The script for any input looks for checkpoints where the program writes them.
(program=$T3D_BIN input=input.toml more=(--set checkpoint.dir=kept -d other)
  eval "$(grep '^eval \|^checkpoints()' "$T3D_SOURCE/jobs/preemptible.sbatch")"
  mkdir -p kept/step-00000003
  [[ $run == other && $ckpt == kept && $(checkpoints) == step-00000003 ]]) || fail "preemptible.sbatch: checkpoint.dir"
"$T3D_BIN" input.toml --write-sbatch 0 > out.log 2>&1
status=$?
expect_status 64
"$T3D_BIN" input.toml --write-sbatch 8 --set model.heads=5 > out.log 2>&1
status=$?
expect_status 78
