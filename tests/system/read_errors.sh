# A read error in the middle of a file is an error with the file's name (74), and never the file's end.
. "$T3D_SOURCE/tests/support/job.sh"
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
export T3D_RETRY_SECONDS=0
make_text 20000
make_input
broken() { # FILE AFTER RANKS args...: of FILE only the first AFTER bytes can be read
  local file=$1 after=$2
  shift 2
  export LD_PRELOAD=$shim IO_FAULT_READ=/$file IO_FAULT_READ_AFTER=$after
  run "$@"
  unset LD_PRELOAD IO_FAULT_READ IO_FAULT_READ_AFTER
  expect_status 74
  expect_text "$file: Input/output error"
  ! grep -q "all steps done" screen.log || fail "a training that lacks a part of $file"
}

# An input of two buffers of 64 KiB, whose last keys lie behind the error.
cp input.toml long.toml
for _ in $(seq 1500); do echo "# a line that makes this input longer than one buffer of 64 KiB" >> long.toml; done
printf '[log]\nevery_steps = 7\n' >> long.toml
run 1 long.toml -n 1
expect_status 0
for after in 65536 70000; do broken long.toml $after 1 long.toml -d r; done
broken long.toml 70000 2 long.toml -d r --set "mesh.cuboid=[1,2,1]"
[[ ! -e r ]] || fail "a run folder of an input that could not be read"

# The text: trained on, evaluated, tokenized.
run 1 input.toml -d done
expect_status 0
broken text.txt 12000 1 input.toml -d r
broken text.txt 12000 2 input.toml -d r --set "mesh.cuboid=[1,2,1]"
grep -q '"code": 74' r/exit.json || fail "exit.json does not say it"
head -c 20000 text.txt > pairs.bin
broken pairs.bin 12000 1 input.toml -d r --set data.train=pairs.bin --set data.format=u16 --set model.vocab=65536
broken text.txt 12000 1 eval done text.txt
for kind in bytes bpe; do broken text.txt 12000 1 tokenize text.txt -o none --kind $kind --vocab 300; done
[[ -z $(compgen -G "none*") ]] || fail "tokens of a part of the text"

# Tokens, in their header, their tables and themselves; and the tokenizer.
for _ in $(seq 30); do cat text.txt; done > large.txt
run 1 tokenize large.txt -o tokens --kind bpe --vocab 300
expect_status 0
bytes=$(stat -c %s tokens-train.h5)
for part in 1 5; do
  broken tokens-train.h5 $((bytes * part / 8)) 1 input.toml -d r --set data.train=tokens-train.h5 --set data.format=auto --set model.vocab=512
  broken tokens-train.h5 $((bytes * part / 8)) 1 inspect tokens-train.h5 --verify
done
run 1 input.toml -d words --set data.train=tokens-train.h5 --set data.format=auto --set model.vocab=512 --set run.steps=2
expect_status 0
cp words/ckpt/tokenizer-*.model tokenizer.model
half=$(($(stat -c %s tokenizer.model) / 2))
broken tokenizer.model $half 1 tokenize text.txt -o none --model tokenizer.model
broken tokenizer.model $half 1 input.toml -d r --set data.tokenizer=tokenizer.model
broken tokens-train.h5 $((bytes / 8)) 1 tokenize text.txt -o none --model tokens-train.h5
[[ -z $(compgen -G "none*") ]] || fail "tokens of a part of a tokenizer"

# The log that a continued run shortens: what could not be read is not thrown away.
cp -r done cut
LD_PRELOAD=$shim IO_FAULT_READ=/log.jsonl IO_FAULT_READ_AFTER=3000 run 1 input.toml -d cut --set run.steps=25
expect_status 0
expect_text "^warning: cut/log.jsonl cannot be cut back to step 20 .*Input/output error"
cmp -s done/log.jsonl cut/log.jsonl || fail "log.jsonl was replaced"

# A fault that passes: what could not be read at the start of a life is tried again. One that stays ends the life, and
# the job is started again, until three lives have brought nothing.
says() { # DIR CODE CONTINUE
  grep -q "\"code\": $2,\?$" "$1/exit.json" && grep -q "\"continue\": $3,\?$" "$1/exit.json" ||
    fail "$(cat "$1/exit.json")"
}
failing() { # FILE RANKS args...: FILE cannot be read while the file "failing" is there; $job
  local launcher=(mpirun -n "$2" --oversubscribe)
  (($2 > 1)) || launcher=()
  touch failing
  LD_PRELOAD=$shim IO_FAULT_READ=/$1 IO_FAULT_READ_WHILE=$PWD/failing "${launcher[@]}" "$T3D_BIN" "${@:3}" > out.log 2>&1 &
  job=$!
}
ends() { # STATUS
  wait "$job"
  status=$?
  expect_status "$1"
}
tries_again() { # FILE
  for _ in $(seq 500); do
    grep -qs "cannot read .*$1.*tried again" out.log && return
    kill -0 "$job" 2> /dev/null || break
    sleep 0.02
  done
  fail "$1 is not tried again"
}
words=(input.toml --set data.train=tokens-train.h5 --set data.format=auto --set model.vocab=512 --set run.steps=2)
export T3D_RETRY_SECONDS=30
node=$(basename "$(ls done/ckpt/step-00000020/node-00000.*)")
for file in input.toml MANIFEST.json "$node"; do
  failing "$file" 1 input.toml -d done
  tries_again "$file"
  rm failing
  ends 0
  expect_text "resumed from done/ckpt/step-00000020"
done
failing tokens-train.h5 2 "${words[@]}" -d words --set "mesh.cuboid=[1,2,1]"
tries_again tokens-train.h5
rm failing
ends 0
failing "$node" 1 input.toml -d done --set run.steps=22
tries_again "$node"
kill -TERM "$job"
ends 75
says done 75 true
export T3D_RETRY_SECONDS=0.5
failing "$node" 1 input.toml -d done --set run.steps=22 --set run.requeue=false
ends 74
says done 74 true
SLURM_JOB_ID=7 failing MANIFEST.json 1 input.toml -d done --set run.steps=22
ends 74
expect_text "three lives in a row"
says done 74 false
# Where lives cannot be recorded, Slurm's restarts are counted.
mkdir unrecorded
cp -r done/ckpt unrecorded
mkdir unrecorded/lives.jsonl
SLURM_JOB_ID=7 SLURM_RESTART_COUNT=2 failing MANIFEST.json 1 input.toml -d unrecorded --set run.steps=22
ends 74
expect_text "could not be kept, and Slurm has started the job again 2 times"
says unrecorded 74 false
failing tokens-train.h5 2 "${words[@]}" -d other --set "mesh.cuboid=[1,2,1]"
ends 74
expect_text "tokens-train.h5: Input/output error"
says other 74 true
