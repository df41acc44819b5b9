# Sourced by tests/system/*.sh: a small text, a small input, runs with their exit codes, comparisons.
# T3D_BIN is the program; the working directory is the test's own and empty.
set -u
export OMP_NUM_THREADS=1

fail() { echo "FAILED: $*" >&2; [[ -e out.log ]] && tail -n 30 out.log >&2; exit 1; }

# A text that a model can learn something of, without any data set.
make_text() { # bytes
  awk -v n="$1" 'BEGIN { split("the a one old new red sea ship king queen road stone bread river sings sleeps walks finds takes and or", w, " ");
    seed = 7; while (bytes < n) { line = ""; for (i = 0; i < 9; ++i) { seed = (seed * 1103515245 + 12345) % 2147483648;
    line = line w[int(seed / 65536) % 21 + 1] " " } print line; bytes += length(line) + 1 } }' > text.txt
}

# input.toml in the working directory; further tables and keys come by --set. Without balancing: what a busy
# machine makes of the ranks' times would decide about shares, and runs are compared to the bit.
make_input() {
  cat > input.toml <<'TOML'
version = 1
[run]
name = "t"
steps = 20
[model]
layers = 2
hidden = 32
heads = 4
context = 32
vocab = 256
dropout = 0.1
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 8
micro = 4
[optimizer]
lr = 3e-3
[hetero]
speeds = "equal"
[balance]
kind = "off"
[checkpoint]
every_minutes = 0
TOML
}

# For plans on clusters of data sheets: large enough to be cut in several ways.
make_plan_input() {
  make_text 20000
  cat > input.toml <<'TOML'
version = 1
[run]
steps = 2000
[model]
layers = 2
hidden = 64
heads = 4
vocab = 256
context = 32
[data]
train = "text.txt"
format = "bytes"
[batch]
sequences = 32
TOML
}

# From here on all ranks share one core, $core, so that their CPU time says how fast they are.
use_one_core() {
  core=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
  printf '#!/bin/bash\nexec taskset -c %s "%s" "$@"\n' "$core" "$T3D_BIN" > on_one_core
  chmod +x on_one_core
  T3D_BIN=$PWD/on_one_core
}

# run RANKS args...: output in out.log (standard output alone in screen.log), exit code in $status
run() {
  local ranks=$1
  shift
  if ((ranks == 1)); then
    timeout -k 5 120 "$T3D_BIN" "$@" > screen.log 2> error.log
  else
    timeout -k 5 120 mpirun -n "$ranks" --oversubscribe "$T3D_BIN" "$@" > screen.log 2> error.log
  fi
  status=$?
  cat screen.log error.log > out.log
  ((status != 124)) || fail "no answer within 120 s: $*"
}

expect_status() { ((status == $1)) || fail "exit code $status instead of $1"; }
# Of what the program prints; $1: a file.
expect_narrow() { awk 'length > 100 { print; bad = 1 } END { exit bad }' "$1" || fail "lines of more than 100 columns"; }
expect_text() { grep -q -- "$1" out.log || fail "no '$1' in the output"; }

# losses DIR: "step loss" lines; same_losses DIR DIR RELATIVE
losses() {
  sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' "$1/log.jsonl" > loss.txt
  sed -n 's/.*"step":\([0-9]*\),.*/\1/p' "$1/log.jsonl" | paste - loss.txt
}
same_losses() {
  losses "$1" > a.txt
  losses "$2" > b.txt
  [[ -s a.txt ]] || fail "$1 has no losses"
  [[ $(wc -l < a.txt) == $(wc -l < b.txt) ]] || fail "$1 and $2 differ in their number of steps"
  paste a.txt b.txt | awk -v e="$3" '{ d = ($2 > $4 ? $2 - $4 : $4 - $2); if ($1 != $3 || d > e * $2) { print; bad = 1 } } END { exit bad }' ||
    fail "the losses of $1 and $2 differ by more than $3"
}

# near_losses DIR DIR ABSOLUTE
near_losses() {
  losses "$1" > a.txt
  losses "$2" > b.txt
  [[ -s a.txt && $(wc -l < a.txt) == $(wc -l < b.txt) ]] || fail "$1 and $2 differ in their steps"
  paste a.txt b.txt | awk -v e="$3" '{ d = ($2 > $4 ? $2 - $4 : $4 - $2); if ($1 != $3 || d > e) { print; bad = 1 } } END { exit bad }' ||
    fail "the losses of $1 and $2 differ by more than $3"
}
