# What the program prints fits into 100 columns: tables and sentences of plan, of a dry run, of --help and --explain, of a run's start,
# of watch where there is no terminal.
. "$T3D_SOURCE/tests/support/job.sh"
make_plan_input
run 1 calibrate --preset h100,a100-40g,ib-ndr -o cluster.toml
expect_status 0
# Long names, large prices, days: wide columns.
sed -i 's/"h100"/"h100_of_the_second_machine_room"/; s/^nodes = 1 .*/nodes = 16/; s/^price_per_node_hour = 0/price_per_node_hour = 30000/' cluster.toml
python3 - cluster.toml <<'PY' || fail "cluster.toml" # operators a billion times slower than the data sheets'
import re, sys
text = open(sys.argv[1]).read()
before, operators = text.split("\n[[operator]]", 1)
slower = lambda line: re.sub(r"[0-9][0-9.e+-]*", lambda number: repr(1e9 * float(number[0])), line[0])
open(sys.argv[1], "w").write(before + "\n[[operator]]" + re.sub(r"(?m)^terms = .*?\]", slower, operators))
PY
for options in "" "--deadline 9000d" "--deadline 9000d --budget 1e12" "--elastic --noise 20000,1.5 --most-batch 4096"; do
  run 1 plan input.toml --cluster cluster.toml $options -o "out${options%% *}"
  expect_status 0
  expect_narrow screen.log
  grep -q "[0-9]e+[0-9]" screen.log && fail "numbers with exponents: plan $options"
done

run 1 input.toml --dry-run 4 --set data.train=nowhere-in-a-folder-with-a-very-long-name/text-of-a-corpus.bin --set batch.micro=8
expect_status 0
expect_narrow screen.log
# Of all ranks: their own, and the program's files once.
python3 - screen.log <<'PY' || fail "what is resident contradicts itself"
import re, sys
unit = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
def size(text): return float(text.split()[0]) * unit[text.split()[1]]
part, found = None, {}
for line in open(sys.argv[1]):
    head = re.match(r"resident (per rank|of all ranks): ([0-9.]+ \w+)", line)
    row = re.match(r"  (tensors|messages|program|its files|checkpoint) +([0-9.]+ \w+)", line)
    if head: part = found[head[1]] = {"all": size(head[2])}
    elif row and part is not None: part[row[1]] = size(row[2])
    else: part = None
one, host = found["per rank"], found["of all ranks"]
assert abs(sum(v for k, v in one.items() if k != "all") / one["all"] - 1) < 0.01, one
assert abs(sum(v for k, v in host.items() if k != "all") / host["all"] - 1) < 0.01, host
assert abs(4 * one["program"] / host["program"] - 1) < 0.01 and 4 * (one["tensors"] + one["messages"]) > 0.99 * host["tensors"], found
PY

for key in run model data data.source batch aggregate optimizer schedule precision mesh balance hetero checkpoint init log; do
  run 1 --explain $key
  expect_status 0
  expect_narrow screen.log
done

for command in "" plan simulate tokenize eval generate inspect import export status watch report probe calibrate scaling; do
  run 1 $command --help
  expect_status 0
  expect_narrow screen.log
done

make_input
awk 'BEGIN { for (n = 0; n < 60; ++n) print "{\"text\": \"one of " n " documents with a few words\"}" }' > documents.jsonl
run 1 tokenize documents.jsonl -o documents --kind bpe --vocab 300
run 2 input.toml -d run --set run.steps=400 --set data.format=auto --set data.train=documents-train.h5 --set model.vocab=0 --set model.layers=1
expect_status 0
grep -v "^step \|^ *[01]  \|^warning: " run/run.log > told.log # without steps and the table of ranks; an event stays one line
expect_narrow told.log
grep -q "[0-9]e+[0-9]" told.log && fail "numbers with exponents in a run"
for ((n = 0; n < 3; ++n)); do # words of an end that are long
  sed -i "s/\"reason\": \"/&because of a reason that needs quite a lot of words to be told /" run/exit.json
done
timeout 60 "$T3D_BIN" watch run > watched.log || fail "watch"
grep -q "because of a reason" watched.log || fail "no reason in watch"
expect_narrow watched.log
