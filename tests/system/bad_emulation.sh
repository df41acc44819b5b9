# Bad [emulate] and [balance]: one line that names file, line and key and says what would be right; exit
# code 78, and no run begins. A dry run checks as a job does, and starts faster.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 5000
make_input
sed -i '/^\[balance\]/,/^kind/d' input.toml
printf '[mesh]\nreplicas = 2\n' >> input.toml
line=$(($(wc -l < input.toml) + 2))

# bad TABLE "KEY = VALUE" TEXT [job]: for two ranks
bad() {
  cp input.toml bad.toml
  printf '[%s]\n%s\n' "$1" "$2" >> bad.toml
  if (($# > 3)); then run 2 bad.toml; else run 1 bad.toml --dry-run 2; fi
  expect_status 78
  sed '/^-----/,$d' error.log > said.log # mpirun adds its own below
  [[ $(wc -l < said.log) == 1 ]] || fail "not one line is said of $2: $(cat said.log)"
  grep -q "^transformer3d: bad.toml:$line:[0-9]*: $1.${2%% *}" said.log || fail "the place of $2 is not named: $(cat said.log)"
  grep -q -- "$3" said.log || fail "no '$3' is said of $2: $(cat said.log)"
  [[ ! -e t/log.jsonl ]] || fail "the run began with $2"
}
bad emulate "slowdown = [1, 2, 3]" "3 factors, and there are 2 ranks; one factor for each rank" job
bad emulate "slowdown = [2]" "1 factors\?, and there are 2 ranks; one factor for each rank"
bad emulate "slowdown = [1, 0.5]" "0.5; allowed: 1 <= x"
bad emulate "slowdown = [1, 0]" "allowed: 1 <= x"
bad emulate "slowdown = [1, -2]" "allowed: 1 <= x"
bad emulate "slowdown = [1, nan]" "write a finite number"
bad emulate "slowdown = [1, inf]" "write a finite number"
bad emulate 'schedule = ["6:2:2"]' 'names rank 2, and the ranks are 0 to 1' job
bad emulate 'schedule = ["3:1:2", "6:-1:2"]' 'names rank -1'
bad emulate 'schedule = ["x:y"]' '"x:y" is not STEP:RANK:FACTOR'
bad emulate 'schedule = ["0:1:2"]' 'a step from 1 on'
bad emulate 'schedule = ["6:1:0.5"]' 'a factor of at least 1'
bad emulate 'schedule = ["6:1:nan"]' 'STEP:RANK:FACTOR'
bad emulate 'schedule = ["6:1:1e9"]' 'at most 1000'
bad emulate 'schedule = ["6:1:2", "6:1:3"]' 'names rank 1 twice at step 6'
bad emulate 'memory_mib = [100]' 'one for each rank'
bad balance 'kind = "modle"' 'did you mean "model"' job
bad balance 'kind = 1' 'kind'
bad balance 'every = 0' 'allowed: 1 <= x'
bad balance 'min_gain = -0.1' 'allowed: 0 <= x'
# The same from the command line, and without a job.
run 2 input.toml --set "emulate.slowdown=[1,2,3]"
expect_status 78
expect_text "^transformer3d: --set emulate.slowdown: "
run 1 input.toml --dry-run 2 --set 'emulate.schedule=["6:2:2"]'
expect_status 78
expect_text "the ranks are 0 to 1"
run 1 input.toml --dry-run 2 --set 'emulate.schedule=["6:1:2"]'
expect_status 0
