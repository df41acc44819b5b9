# What jobs/quickstart.sh stands on where little is installed: a text without bible-kjv, and a table of
# packages that goes on without apt-get or without root, and leaves nothing behind in /tmp.
set -eu
fail() { echo "FAILED: $*" >&2; exit 1; }
python=$(python3 -c 'import sys; print(sys.executable)')
mkdir bin
ln -s "$python" bin/python3
[[ -z "$(PATH=$PWD/bin command -v bible)" ]] || fail "bible is still found"

for folder in one two; do
  PATH=$PWD/bin python3 "$T3D_SOURCE/jobs/prepare_corpus.py" "$folder" > "$folder.log" ||
    fail "no text without bible-kjv"
done
cat one.log
grep -q "documentation: .* bits per byte" one.log || fail "it does not say which text it is"
cmp one/train.txt two/train.txt && cmp one/held_out.txt two/held_out.txt || fail "two calls, two texts"
(($(wc -c < one/train.txt) > 1000000)) || fail "too little text"
held_out=$(wc -c < one/held_out.txt)
((held_out > 50000 && held_out < 100000)) || fail "$held_out bytes held out of about 1.8 MB"
grep -Fxqf <(head -n 200 one/held_out.txt) one/train.txt && fail "a held-out line is trained on"
"$T3D_BIN" tokenize one/held_out.txt -o tokens --kind bpe --vocab 1000 > tokens.log
[[ -s tokens-train.h5 ]] || fail "no token file"

# A system of stand-ins: no apt-get at all; then apt-get, but neither root nor sudo.
for tool in bash cmake mpirun awk tr cat id; do ln -sf "$(command -v $tool)" "bin/$tool"; done
packages() { PATH=$PWD/bin bash "$T3D_SOURCE/jobs/packages.sh" install all 2> packages.log; }
packages || fail "it does not go on without apt-get"
grep -q "going on with what the environment offers" packages.log || fail "it does not say so"
printf '#!/bin/sh\nexit 1\n' > bin/apt-get
cp bin/apt-get bin/dpkg-query
rm bin/id
printf '#!/bin/sh\necho 1000\n' > bin/id
chmod +x bin/apt-get bin/dpkg-query bin/id
packages || fail "it does not go on without root"
rm bin/cmake
status=0
packages || status=$?
((status == 69)) || fail "status $status instead of 69 where there is no cmake"
grep -q "libdnnl-dev" packages.log && grep -q "onednn" packages.log || fail "the packages are not named"

# As root, with an apt-get that fails: its words are shown, and its log was nobody else's to read or to
# place there before, and is gone.
printf '#!/bin/sh\necho 0\n' > bin/id
printf '#!/bin/sh\necho "the archive burns"; stat -c "log %%a" "$TMPDIR"/*; exit 100\n' > bin/apt-get
for tool in env mktemp tail rm stat; do ln -sf "$(command -v $tool)" "bin/$tool"; done
mkdir tmp
status=0
TMPDIR=$PWD/tmp packages > /dev/null || status=$?
((status == 69)) || fail "status $status instead of 69 where apt-get fails"
grep -q "the archive burns" packages.log || fail "apt-get's words are lost"
grep -q "log 600" packages.log || fail "the log is not of mktemp"
[[ -z "$(ls tmp)" ]] || fail "left behind: $(ls tmp)"
