# The documents tell the truth: what README and docs/*.md tag with "run", "file" or "input"
# (tests/support/document_blocks.py) is run as it stands there, in the document's order, on small texts.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
export T3D_SOURCE T3D_BIN
PATH=$(dirname "$T3D_BIN"):$PATH

# What the documents' commands expect to find.
prepare() {
  local source
  mkdir -p texts runs && head -c 30000 ../text.txt > texts/a.txt && tail -c 30000 ../text.txt > texts/b.txt
  cp ../text.txt book.txt
  "$T3D_BIN" tokenize book.txt -o web --kind bytes --valid 0.1 > tools.log && for source in code more-code books; do
    cp web-train.h5 $source-train.h5 && cp web-valid.h5 $source-valid.h5 || return
  done
  mkdir -p web && cp web-train.h5 web/part-train.h5
}

# A dry run takes the tables of standard input; whatever they leave open comes from here.
takes_input() {
  cat > tables.toml
  grep -q '^version' tables.toml || sed -i '1i version = 1' tables.toml
  local key rest=()
  for key in run.steps=10 model.layers=2 model.hidden=32 model.heads=4 model.context=32 batch.sequences=32 \
    data.train=web-train.h5 data.format=auto; do
    grep -q '^\[\[data.source' tables.toml && [[ $key == data.train=* ]] && continue
    rest+=(--set "$key")
  done
  "$T3D_BIN" tables.toml --dry-run 8 "${rest[@]}"
}
export -f takes_input

commands=0
for document in "$T3D_SOURCE"/README.md "$T3D_SOURCE"/docs/*.md; do
  name=$(basename "$document" .md)
  mkdir "$name" && cd "$name" || fail "$name"
  python3 "$T3D_SOURCE/tests/support/document_blocks.py" "$document" > ../$name.script || fail "$name: its blocks"
  if [[ -s ../$name.script ]]; then
    prepare || fail "$name: prepare"
    timeout -k 5 280 bash -e -o pipefail -v ../$name.script > ../out.log 2>&1 ||
      { cd ..; fail "$document: the last command above has failed"; }
    commands=$((commands + $(grep -cE '^# \S+\.md:[0-9]+$' ../$name.script)))
  fi
  cd ..
done
((commands >= 15)) || fail "only $commands blocks of the documents were run"
echo "$commands blocks of the documents were run"
