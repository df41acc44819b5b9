# transformer3d watch: on a terminal, on none, once; whatever ends it, the terminal is as before.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 4000
make_input
run 2 input.toml -d run --set run.steps=6 --set balance.kind=model
expect_status 0
export LC_ALL=C.UTF-8 TERM=xterm
watch=("$T3D_BIN" watch run)

"${watch[@]}" --once > out.log || fail "no screen"
expect_text "run  done (0): all steps done"
expect_text "6 of 6  100.0 %"
expect_text "^ranks in step"
expect_text "^        1 .*█"
grep -q $'\033' out.log && fail "ANSI sequences in a file"
LC_ALL=C "${watch[@]}" --once | LC_ALL=C grep -q '[^ -~]' && fail "letters that are not ASCII"

# No terminal, or one that knows nothing: lines, until the run has ended.
timeout 60 "${watch[@]}" > out.log || fail "it did not end with the run"
expect_text "done  step 6/6  loss"
TERM=dumb timeout 60 script -qec "$T3D_BIN watch run" /dev/null > out.log || fail "no lines on a dumb terminal"
expect_text "done  step 6/6  loss"
grep -q $'\033' out.log && fail "ANSI sequences on a dumb terminal"

on_terminal() { # KEY_OR_SIGNAL STATUS
  python3 "$T3D_SOURCE/tests/support/watch_terminal.py" "$1" "${watch[@]}" > out.log 2>&1 || fail "after $1"
  expect_text "^status $2$"
}
on_terminal q 0
on_terminal ^C 0
on_terminal TERM -15
on_terminal resize 0
(($(sed -n 's/^longest line //p' out.log) <= 30)) || fail "lines are longer than the window"

run 1 watch nothing --once
expect_status 66
expect_text "there is no nothing"
mkdir all && cp -r run all/one && cp -r run all/two
for command in watch status; do
  run 1 $command all
  expect_status 66
  expect_text "all is no run folder.*; runs are in all/one, all/two"
done
run 1 watch run --interval 0
expect_status 64

# Before the run has begun: it waits for the folder.
timeout 60 "$T3D_BIN" watch later > waited.log &
waiting=$!
sleep 1
kill -0 $waiting || fail "it did not wait for the run"
mkdir moved && cp -r run moved/later && mv moved/later later
wait $waiting || fail "it did not end with the run"
grep -q "^waits for a run in later" waited.log && grep -q "done  step 6/6" waited.log || fail "what it waited for"
