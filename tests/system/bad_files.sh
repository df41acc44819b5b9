# Files that cannot be read or are no files, folders that cannot be reached or named, screens that are
# full: the right exit code with the name of the file, within seconds.
. "$T3D_SOURCE/tests/support/job.sh"
export T3D_RETRY_SECONDS=0 # a read that fails is not tried again
make_text 20000
make_input
bad() { # STATUS TEXT args...
  local want=$1 text=$2
  shift 2
  SECONDS=0
  run 1 "$@"
  expect_status "$want"
  expect_text "$text"
  ((SECONDS < 10)) || fail "an answer after $SECONDS s"
}

# The input: a read error, loops of links, long names, folders, pipes.
bad 74 "/proc/self/mem: Input/output error" /proc/self/mem
ln -s loop loop
long=$(printf 'a%.0s' $(seq 5000))
bad 66 "loop: Too many levels" loop
bad 66 "loop/in.toml: Too many levels" loop/in.toml
bad 66 "File name too long" "$long"
bad 66 "File name too long" "$long.toml"
bad 66 "folder.toml is a folder" "$(mkdir folder.toml && echo folder.toml)"
mkfifo pipe pipe.toml
bad 66 "pipe.toml is not a regular file" pipe.toml
bad 66 "pipe is not a regular file" pipe
bad 74 "pipe is not a regular file" input.toml --set data.train=pipe
bad 74 "pipe is not a regular file" input.toml --set data.train=pipe --set data.format=hdf5
bad 74 "pipe is not a regular file" input.toml --set data.train=pipe --set data.format=auto
bad 74 "loop" inspect loop
bad 74 "loop" generate loop
bad 74 "pipe is not a regular file" inspect pipe
bad 74 "pipe is not a regular file" tokenize pipe -o x
bad 74 "pipe is not a regular file" tokenize text.txt -o x --model pipe
bad 74 "loop" input.toml -d loop/run

# A folder that may not be searched; root may search all of them.
mkdir -p closed/inside
cp input.toml closed/inside/ && chmod 000 closed
if [[ $(id -u) == 0 ]]; then as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups); else as_user=(); fi
if "${as_user[@]}" test -x "$T3D_BIN"; then
  "${as_user[@]}" "$T3D_BIN" closed/inside/input.toml > out.log 2>&1
  status=$?
  expect_status 66
  expect_text "closed/inside/input.toml: Permission denied"
  "${as_user[@]}" "$T3D_BIN" inspect closed/inside > out.log 2>&1
  status=$?
  expect_status 74
  expect_text "closed/inside: Permission denied"
fi
chmod 755 closed

# Paths that a checkpoint could not name.
bad 78 "run.dir: this is not UTF-8" input.toml -d "$(printf 'r\xff')"
bad 78 "checkpoint.dir: this is not UTF-8" input.toml --set "checkpoint.dir=$(printf 'r\xff')"
bad 78 'run.dir cannot be "a\\x0Ab"' input.toml -d $'a\nb'
bad 78 'run.dir cannot be "a\\x0Ab"' input.toml --set 'run.dir="a\nb"'

# Faults without end, jobs without end.
{ cat input.toml; echo "[log]"; for n in $(seq 100000); do echo "every_step$n = 1"; done; } > many.toml
bad 78 "and 99950 more" many.toml
bad 64 "from 1 to 16777216" input.toml -n 999999999
bad 78 "and there are 16777216" input.toml -n 16777216 --set "mesh.cuboid=[2,2,2]"

# Output to a full disk.
run 1 tokenize text.txt -o tokens --kind bytes
expect_status 0
for call in --defaults --help --version "--explain optimizer.lr" --input-reference "input.toml -n 4" "inspect tokens-train.h5"; do
  # shellcheck disable=SC2086
  "$T3D_BIN" $call > /dev/full 2> out.log
  status=$?
  expect_status 74
  expect_text "No space left on device"
done
# A reader that goes away ends a command quietly.
"$T3D_BIN" --defaults 2> out.log | head -n 1 > /dev/null
status=${PIPESTATUS[0]}
[[ $status == 0 || $status == 141 ]] || fail "exit code $status of --defaults | head"
[[ ! -s out.log ]] || fail "a word about the pipe"

# quickstart in a folder of somebody else.
mkdir -p theirs && cp -r "$T3D_SOURCE/jobs" "$T3D_SOURCE/inputs" theirs/ && chmod -R a+rX theirs && chmod 555 theirs
if "${as_user[@]}" test -x theirs/jobs/quickstart.sh; then
  "${as_user[@]}" theirs/jobs/quickstart.sh > out.log 2>&1
  status=$?
  expect_status 74
  expect_text "may not write to .*theirs, which belongs to"
  expect_text "folder of your own"
fi
chmod 755 theirs
