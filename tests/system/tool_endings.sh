# The commands beside training end well: no half file after a signal, and no success when their
# output was lost.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
run 1 tokenize text.txt -o small --kind bpe --vocab 300
run 1 input.toml -d r --set run.steps=2
expect_status 0

# tokenize is stopped while it writes: it dies of the signal and leaves nothing.
for _ in $(seq 150); do cat text.txt; done > large.txt
for signal in TERM INT HUP; do
  mkdir out
  # A shell without job control lets its background jobs ignore INT: set it as a terminal has it.
  python3 -c "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])" \
    "$T3D_BIN" tokenize large.txt -o out/t --model small-train.h5 > out.log 2>&1 &
  job=$!
  for _ in $(seq 1000); do
    compgen -G 'out/t.parts/*.partial-*' > /dev/null && break
    sleep 0.01
  done
  compgen -G 'out/t.parts/*.partial-*' > /dev/null || fail "nothing is being written"
  kill -s $signal $job
  wait $job 2> /dev/null
  status=$?
  expect_status $((128 + $(kill -l $signal)))
  [[ -z $(ls -A out) ]] || fail "$signal left $(ls -A out)"
  rmdir out
done

# What cannot be written is an error.
full() { # args...
  timeout 60 "$T3D_BIN" "$@" > /dev/full 2> out.log
  status=$?
  expect_status 74
  expect_text "standard output: No space left"
}
full tokenize text.txt -o full
full inspect small-train.h5
full inspect r/ckpt/step-00000002
full eval r text.txt
full generate r --tokens 3

# A path that cannot be looked at is an I/O error, not a bug of the program.
ln -s loop loop
run 1 inspect loop
expect_status 74
expect_text "cannot read loop"
run 1 inspect "$(printf '%0300d' 0)"
expect_status 74
