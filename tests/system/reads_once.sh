# What all ranks need of input and corpus, one rank reads. A rank without work, which cannot read these files, is a
# rank as any other.
. "$T3D_SOURCE/tests/support/job.sh"
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
export T3D_RETRY_SECONDS=0
make_text 20000
make_input
run 1 tokenize text.txt -o words --kind bpe --vocab 300
expect_status 0
sed -i 's/^train = .*/train = "words-train.h5"/; s/^format = .*/format = "auto"/; s/^vocab = .*/vocab = 0/' input.toml
cat > with_faults <<'SH'
#!/bin/bash
if [[ $OMPI_COMM_WORLD_RANK == "$BROKEN_RANK" ]]; then export LD_PRELOAD=$SHIM IO_FAULT_READ=$BROKEN_FILE; fi
exec "$PROGRAM" "$@"
SH
chmod +x with_faults
export SHIM=$shim PROGRAM=$T3D_BIN BROKEN_RANK BROKEN_FILE
T3D_BIN=$PWD/with_faults
idle=(input.toml --set mesh.replicas=2 --set run.steps=3)
for BROKEN_FILE in /input.toml /words-train.h5; do
  BROKEN_RANK=2
  run 3 "${idle[@]}" -d run -r never
  expect_status 0
  expect_text "1 of 3 ranks is idle"
done
# On the rank that reads for all, the same fault ends all of them, with one message.
BROKEN_RANK=0
for BROKEN_FILE in /input.toml /words-train.h5; do
  run 3 "${idle[@]}" -d broken
  expect_text "^transformer3d: .*${BROKEN_FILE#/}.* (rank 0, node $(hostname))"
  [[ $(grep -c "^transformer3d: " out.log) == 1 ]] || fail "more than one message"
  [[ ! -e broken ]] || fail "a run folder"
done
