# The resident memory that --dry-run predicts is that of the run, within 10 %; its tensors within 2 %.
# bench/memory_shapes.sh measures more shapes.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
for job in "1 [1,1,1]" "2 [2,1,1]" "4 [1,2,2]"; do
  read -r ranks cuboid <<< "$job"
  wide=(--set "mesh.cuboid=$cuboid" --set model.hidden=512 --set model.heads=8 --set model.context=64 --set run.steps=3
    --set model.vocab=20000 --set debug.threads=1)
  run "$ranks" input.toml -d "memory$ranks" "${wide[@]}"
  expect_status 0
  grep -o '[0-9.]* [KMG]iB for tensors.*' out.log | sed 's/\([0-9.]* [KMG]iB\) for tensors, \([0-9.]* [KMG]iB\) resident.*/\1 \2/' > measured.txt
  run 1 input.toml --dry-run "$ranks" "${wide[@]}"
  expect_status 0
  sed -n 's/^memory per rank: \([0-9.]* [KMG]iB\) at most.*/\1/p' out.log | tr '\n' ' ' > predicted.txt
  sed -n 's/^resident per rank: \([0-9.]* [KMG]iB\) at most.*/\1/p' out.log >> predicted.txt
  paste -d' ' measured.txt predicted.txt | awk '{ u["KiB"] = 1 / 1024; u["MiB"] = 1; u["GiB"] = 1024
      tensors = $1 * u[$2]; resident = $3 * u[$4]; t = $5 * u[$6]; r = $7 * u[$8]
      print "tensors", tensors, "predicted", t, "resident", resident, "predicted", r
      exit !(t > 0.98 * tensors && t < 1.02 * tensors && r > 0.9 * resident && r < 1.1 * resident) }' ||
    fail "memory of $ranks ranks: $(cat measured.txt predicted.txt)"
done
