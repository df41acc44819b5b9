# What the job scripts do at the end of a life, and what the program says to Slurm, with a Slurm of shell scripts:
# each life is told from others by its job and its count of restarts. (tests/slurm has the real Slurm.)
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
mkdir fake
export PATH=$PWD/fake:$PATH FAKE=$PWD
# scontrol answers with $FAKE/job.txt; srun runs $FAKE/life instead of ranks.
cat > fake/scontrol <<'FAKE'
#!/bin/sh
case "$*" in
  *"show job"*) cat "$FAKE/job.txt" ;;
  requeue*) echo "$*" >> "$FAKE/asked.txt" ;;
esac
FAKE
printf '#!/bin/sh\nexec sh "$FAKE/life"\n' > fake/srun
printf '#!/bin/sh\necho "$T3D_CHAIN" > "$FAKE/chain.txt"\n' > fake/sbatch
printf '#!/bin/sh\n' > fake/sleep
chmod +x fake/*
unset SLURM_RESTART_COUNT SLURM_CLUSTER_NAME T3D_CHAIN
export SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1
slurm_says() { # STATE RESTARTS
  echo "JobId=7 JobName=x JobState=$1 Reason=None Dependency=(null) Requeue=1 Restarts=$2 BatchFlag=1 Command=$FAKE/x NumNodes=1 Partition=low TimeLimit=01:00:00" > job.txt
}
life() { # EXIT-STATUS [SHELL TEXT]: what the ranks do
  printf '%s\nexit %s\n' "${2:-:}" "$1" > life
}
ended() { # RUN CODE RESTART CONTINUE REQUEUES: exit.json
  mkdir -p "$1"
  printf '{\n  "code": %s,\n  "reason": "x",\n  "continue": %s,\n  "requeues": %s,\n  "paused": false,\n  "cluster": "",\n  "job": "7",\n  "restart": %s,\n  "token": "aa"\n}\n' \
    "$2" "$4" "$5" "$3" > "$1/exit.json"
}
script() { # NAME RUN: one life by this script
  rm -f asked.txt
  SECONDS=0
  bash "$T3D_SOURCE/jobs/$1.sbatch" input.toml -d "$2" > out.log 2>&1
  status=$?
}
asked() { [[ -e asked.txt ]] && wc -l < asked.txt || echo 0; }

for name in preemptible one_node many_nodes gpus heterogeneous; do
  export T3D_BIN
  # The end of the life before stays for the program's next start, and is not taken for this one's.
  slurm_says RUNNING 1
  export SLURM_RESTART_COUNT=1
  ended "$name" 76 0 true true
  cp "$name/exit.json" before.json
  life 137
  script $name $name
  cmp -s before.json $name/exit.json || fail "$name: exit.json of the life before is gone"
  [[ $status == 137 && $(asked) == 1 ]] || fail "$name: a killed life is put back once: $(cat out.log)"
done
name=preemptible
# The speaker was killed before Slurm had answered it, or after.
for word in null true; do
  ended ended 76 1 true $word
  life 137 "cp ended/exit.json $name"
  script $name $name
  [[ $status == 76 && $(asked) == 1 ]] || fail "requeues $word: $(cat out.log)"
done
# It is back already, or was cancelled; or nobody wants it back.
for state in "RUNNING 2" "CANCELLED 1"; do
  slurm_says $state
  script $name $name
  [[ $(asked) == 0 ]] || fail "$state: put back"
done
slurm_says RUNNING 1
ended ended 75 1 true false
script $name $name
[[ $status == 75 && $(asked) == 0 ]] || fail "requeues false: $(cat out.log)"

# Checkpoints in folders of any name count.
slurm_says RUNNING 1
export SLURM_RESTART_COUNT=1
life 137 'n=$(ls -d runs/partial-x/ckpt/step-* 2> /dev/null | wc -l); mkdir -p runs/partial-x/ckpt/step-0000000$n'
for ((n = 0; n < 4; ++n)); do
  script preemptible runs/partial-x
  [[ $(asked) == 1 ]] || fail "life $n has progressed: $(cat out.log)"
done
life 137
for ((n = 0; n < 4; ++n)); do
  script preemptible runs/partial-x
  [[ $(asked) == $((n < 2)) ]] || fail "life $n has not: $(cat out.log)"
done

# A chain goes on after a life without a word, and says why it ends.
unset SLURM_RESTART_COUNT
script chain runs/chain
[[ -s chain.txt ]] || fail "the chain ends after a killed life: $(cat out.log)"
T3D_CHAIN=$(cat chain.txt) script chain runs/chain
expect_text "the chain ends: .* no new checkpoint"
life 78
rm chain.txt
script chain runs/chain
expect_text "the chain ends: the program ended with 78"
[[ ! -e chain.txt ]] || fail "an input that is wrong is tried again"

# The program: a life that Slurm itself has put back, or that is a left-over of an earlier one.
stopped() { # RUN [COMMAND]: a new training that is asked to stop, after the command
  rm -rf asked.txt "$1"
  "$T3D_BIN" input.toml -d "$1" --set run.steps=1000000 > out.log 2>&1 &
  local pid=$!
  for ((look = 0; look < 300; ++look)); do
    grep -qs '"step":5,' "$1/log.jsonl" && break
    command -p sleep 0.1
  done
  ${2:-:}
  kill -TERM $pid
  wait $pid
  status=$?
  expect_status 75
}
for state in "COMPLETING 1" "RUNNING 1" "REQUEUED 0"; do
  slurm_says $state
  stopped left
  ! grep -q "not started again" out.log || fail "$state: $(cat out.log)"
  grep -q '"continue": true' left/exit.json || fail "$state: $(cat left/exit.json)"
  [[ $(asked) == 0 ]] || fail "$state: $(cat asked.txt)"
done
# The count of restarts in its environment may be that of the job which submitted this one: a left-over is told by
# what Slurm said when its life began.
export SLURM_RESTART_COUNT=3
slurm_says RUNNING 0
stopped left "slurm_says RUNNING 1"
[[ $(asked) == 0 ]] || fail "a left-over has put the job back: $(cat asked.txt)"
slurm_says RUNNING 0
life 137 'sed "s/Restarts=0/Restarts=1/" "$FAKE/job.txt" > "$FAKE/later.txt" && mv "$FAKE/later.txt" "$FAKE/job.txt"'
script preemptible runs/inherited
[[ $(asked) == 0 ]] || fail "a left-over script has put the job back: $(cat asked.txt)"
slurm_says RUNNING 0
life 137
script preemptible runs/inherited
[[ $(asked) == 1 ]] || fail "not put back by the script: $(cat out.log)"
unset SLURM_RESTART_COUNT
slurm_says RUNNING 0
stopped left
[[ $(asked) == 1 ]] || fail "not put back: $(cat out.log)"
grep -q '"job": "7"' left/exit.json && grep -q '"requeues": true' left/exit.json || fail "exit.json: $(cat left/exit.json)"
