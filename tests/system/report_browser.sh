# slow: the pages of `transformer3d report` in a real browser: no errors, no requests, hovering reads the log's values, zoom, keyboard,
# legend, themes, paper; at 1280 and 400 pixels. Pictures are left beside this test's output, to be looked at.
. "$T3D_SOURCE/tests/support/job.sh"
command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null ||
  { echo "no Chromium here"; exit 77; }
make_text 60000
make_input
sed -i 's/^kind = "off"/kind = "model"/' input.toml
common=(input.toml --set mesh.replicas=2 --set model.hidden=64 --set batch.sequences=24 --set checkpoint.every_steps=20
  --set data.valid=text.txt --set eval.every_steps=10 --set eval.batches=2)
run 4 "${common[@]}" -d moved --set 'mesh.cuboid=[1,2,1]' --set run.steps=60 --set 'emulate.schedule=["15:2:4"]' \
  --set aggregate.method=adasum
expect_status 0
run 2 "${common[@]}" -d other --set run.steps=40
expect_status 0
run 3 "${common[@]}" -d other --set run.steps=70 --set mesh.replicas=auto
expect_status 0
run 1 report moved other -o two.html
expect_status 0
python3 "$T3D_SOURCE/tests/support/synthetic_run.py" big
run 1 report big -o big.html
expect_status 0
python3 "$T3D_SOURCE/tests/support/report_in_browser.py" two.html big.html || fail "the pages are not right in the browser"
