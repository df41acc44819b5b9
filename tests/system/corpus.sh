# What a corpus is must be clear to everybody: ranks that see other files under the same names, and
# files whose signature is not that of data.format.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
run 1 tokenize text.txt -o a --kind bytes
tr 'a' 'e' < text.txt > other.txt
run 1 tokenize other.txt -o b --kind bytes

# Two nodes, each with a folder of its own: the text of one was cut off.
mkdir here there
cp text.txt here
head -c 15000 text.txt > there/text.txt
cp a-train.h5 here/tokens.h5
cp b-train.h5 there/tokens.h5
cmp -s a-train.h5 b-train.h5 && fail "the two token files are equal"
cp input.toml here
cp input.toml there
apart() { # args...: rank 0 in here/, rank 1 in there/
  local job=("$T3D_BIN" input.toml -d "$PWD/run" "$@")
  timeout 60 mpirun --oversubscribe -n 1 -wdir "$PWD/here" "${job[@]}" : -n 1 -wdir "$PWD/there" "${job[@]}" \
    > out.log 2>&1
  status=$?
}
apart
expect_status 78
expect_text "data.train names other files on 1 of 2 ranks than on rank 0 (node .*): rank 1 (node .*) has .*text.txt of 15000 bytes"
[[ ! -e run/log.jsonl ]] || fail "a run was begun"
# Equal names, sizes and numbers of tokens, another text: token files carry checksums.
apart --set data.format=auto --set "data.train='tokens.h5'"
expect_status 78
expect_text "tokens.h5 of .* checksum"
cp here/text.txt there/text.txt
apart --set "data.valid='tokens.h5'" --set data.format=auto
expect_status 78
expect_text "data.valid names other files"
apart --set run.steps=2
expect_status 0

# The signature of a file against data.format, in training and in eval.
run 1 input.toml -d raw --set "data.train='a-train.h5'"
expect_status 78
expect_text "a-train.h5 is hdf5 by its signature, but data.format = .bytes."
run 1 input.toml -d bytes --set run.steps=2
expect_status 0
run 1 eval bytes a-train.h5
expect_status 78
expect_text "a-train.h5 is hdf5 by its signature, but data.format = .bytes."
run 1 eval bytes text.txt
expect_status 0
grep -o "loss.*" screen.log > raw.txt
run 1 eval bytes a-train.h5 --set data.format=auto
expect_status 0
grep -o "loss.*" screen.log | cmp -s - raw.txt || fail "a byte token file has another loss than its text"
