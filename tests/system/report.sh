# `transformer3d report`: the data in the page are those of the logs, for runs that were balanced, stopped and continued on other
# ranks; what is wrong with a folder is said; a file that is no report stays.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
sed -i 's/^kind = "off"/kind = "model"/' input.toml
common=(input.toml --set batch.sequences=24 --set data.valid=text.txt --set eval.every_steps=10 --set eval.batches=2)
run 4 "${common[@]}" -d moved --set mesh.replicas=2 --set 'mesh.cuboid=[1,2,1]' --set run.steps=30 \
  --set 'emulate.schedule=["5:2:6"]' --set aggregate.method=adasum
expect_status 0
run 2 "${common[@]}" -d other --set mesh.replicas=auto --set run.steps=10 --set model.dropout=0
expect_status 0
run 3 "${common[@]}" -d other --set mesh.replicas=auto --set run.steps=20 --set model.dropout=0
expect_status 0

# compare PAGE RUN...: every number of every log is in the page
compare() { python3 "$T3D_SOURCE/tests/support/report_data.py" "$@" || fail "$1 has other data than the logs"; }
run 1 report moved other/ -o two.html
expect_status 0
expect_text "^two.html: .* of 2 runs"
expect_text "moved: emulated: some ranks were made slower"
expect_text "the runs differ in model.dropout: compare their losses with care"
compare two.html moved other
python3 - <<'PY' || fail "lives, plans, checkpoints"
import json, re
page = json.loads(re.search(r'id="report">(.*?)</script>', open("two.html").read(), re.S)[1])
moved, other = page["runs"]
assert [life["ranks"] for life in other["lives"]] == [2, 3] and other["lives"][1]["from_step"] == 10, other["lives"]
assert moved["exit"]["code"] == 0 and moved["state"] == "done", moved["exit"]
assert len(moved["plans"]) > 1 and moved["plans"][0]["slabs"] == [0, 0, 1, 1], moved["plans"]
first, last = moved["plans"][0]["sequences"], moved["plans"][-1]["sequences"]
assert first == [12, 12] and last[0] > last[1] and sum(last) == 24, (first, last)
assert [e["step"] for e in other["events"] if e["kind"] == "checkpoint"] == [10, 20], other["events"]
assert "run.steps" in [one["key"] for one in page["differences"]], page["differences"]
PY
# Wide tables: on a screen they scroll in a frame of their own, on paper their cells become narrower.
python3 - <<'PY' || fail "a wide table runs off the page"
import re
page = open("two.html").read()
style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
screen, paper = style.split("@media print", 1)
rule = lambda text, selector: " ".join(re.findall(r"(?:^|[},])\s*" + re.escape(selector) + r"\s*(?:,[^{}]*)?\{([^}]*)\}", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
assert "overflow-x: auto" in rule(screen, ".table"), rule(screen, ".table")
for cells in ("table.data th", "table.data td", "table.data .number", "table.data tbody th"):
    assert all(word in rule(paper, cells) for word in ("min-width: 0", "overflow-wrap: anywhere", "white-space: normal")), (cells, rule(paper, cells))
assert not re.search(r"(?<!max-)(?<!min-)width: *[0-9]+(px|ch)", " ".join(re.findall(r"table\.data[^{]*\{[^}]*\}", style))), "a table of a fixed width"
frame = r'element\("div", \{class: "table"[^}]*\}, (table|tree\(run\.json\.record\))\)'
assert sorted(re.findall(frame, page)) == ["table", "tree(run.json.record)"], re.findall(frame, page)
assert len(re.findall(r'element\("table", \{class: "data"', page)) == 2, "a table without a frame"
PY
if command -v node > /dev/null; then # curves and their colours, by the page's own script
  node "$T3D_SOURCE/tests/support/report_curves.js" two.html || fail "curves"
fi
! grep -q 'src="\|href="http\|@import\|url([^#]' two.html || fail "the page needs other files"

# A page is replaced by a newer one; nothing else is.
run 1 report moved -o two.html
expect_status 0
compare two.html moved
cp moved/log.jsonl kept.jsonl
run 1 report moved -o moved/log.jsonl
expect_status 64
expect_text "moved/log.jsonl is there already and is no report"
cmp -s kept.jsonl moved/log.jsonl || fail "a log was overwritten"
mkdir full
run 1 report moved -o full
expect_status 74
run 1 report moved -o two.html/x/y.html
expect_status 74
expect_text "two.html is no folder"
run 1 report moved -o new/folder/moved.html
expect_status 0

# A log that is cut in the middle of a line, or has lines that are none; the others are there.
cp -r moved cut
head -c -40 moved/log.jsonl > cut/log.jsonl
run 1 report cut -o cut.html
expect_status 0
expect_text "cut: log.jsonl ends in the middle of a line"
compare cut.html cut
(echo "no record"; cat moved/log.jsonl; head -n 3 moved/log.jsonl) > cut/log.jsonl
echo "{" > cut/plans/0.toml
run 1 report cut -o cut.html
expect_status 0
expect_text "1 of 34 lines of log.jsonl is no record of a step"
expect_text "3 records of log.jsonl have a step that does not follow"
expect_text "cut/plans/0.toml is not a plan"

# Folders without a run, with one that has no step, and below which there are runs.
mkdir -p empty all
mv other all/
run 1 report empty -o no.html
expect_status 66
expect_text "empty is no run folder"
run 1 report all -o no.html
expect_status 66
expect_text "all is no run folder.*; runs are in all/other"
run 1 report none -o no.html
expect_status 66
: > cut/log.jsonl
run 1 report moved cut -o no.html
expect_status 66
expect_text "cut has no step in log.jsonl"
run 1 report moved moved/ -o no.html
expect_status 64
expect_text "moved is named twice"
[[ ! -e no.html ]] || fail "a page of nothing"
! ls ./*.partial-* 2> /dev/null || fail "an unfinished page stays"
