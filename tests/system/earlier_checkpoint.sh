# A checkpoint written by an earlier version, whose files hold no plan, continues: on the ranks that
# wrote it with the same losses, on others with those of another order of sums.
. "$T3D_SOURCE/tests/support/job.sh"
earlier=$T3D_SOURCE/tests/reference/earlier_checkpoint
. "$earlier/input.sh"
make_earlier_input

continues() { # DIR RANKS TOLERANCE args...
  local dir=$1 ranks=$2 tolerance=$3
  shift 3
  mkdir -p "$dir/ckpt"
  cp -r "$earlier"/step-* "$dir/ckpt"
  run "$ranks" input.toml -d "$dir" "$@"
  expect_status 0
  expect_text "resumed from $dir/ckpt/step-00000006 at step 6"
  losses "$dir" > now.txt
  [[ $(wc -l < now.txt) == 6 ]] || fail "$dir: not the steps 7 to 12"
  paste "$earlier/losses.txt" now.txt | awk -v e="$tolerance" '
    { d = ($2 > $4 ? $2 - $4 : $4 - $2); if ($1 != $3 || d > e * $2) { print; bad = 1 } }
    END { exit bad }' || fail "$dir: other losses than the earlier version's"
}
# The same sums; another processor's products may round otherwise.
continues same 2 1e-14
grep -q 'plan' same/plan.toml || fail "the run has no plan"
# One replica of two leaves; every matrix cut in another way.
continues other 4 1e-12 --set "mesh.cuboid=[1,2,1]"
continues alone 1 1e-12 --set mesh.replicas=1 --set aggregate.leaves=2
