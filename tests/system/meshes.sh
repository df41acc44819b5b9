# The same training by one process and by several, as processes of a real MPI job.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
run 1 input.toml -d one
expect_status 0
for mesh in "2 [2,1,1]" "2 [1,1,2]" "6 [3,1,2]" "8 [2,2,2]"; do
  read -r ranks cuboid <<< "$mesh"
  run "$ranks" input.toml -d "m$ranks" --set "mesh.cuboid=$cuboid"
  expect_status 0
  same_losses one "m$ranks" 1e-4
  grep -q differ out.log && fail "$mesh: bytes differ from the formula"
  rm -rf "m$ranks"
done
run 8 input.toml -d r --set "mesh.cuboid=[2,2,1]" --set mesh.replicas=2
expect_status 0
same_losses one r 1e-4
run 8 input.toml -d u --set "mesh.cuboid=[2,2,2]" --set "mesh.tokens=[3,1]" --set "mesh.outputs=[1,2]" --set "mesh.contractions=[5,3]"
expect_status 0
same_losses one u 1e-4
run 8 input.toml -d p --set "mesh.cuboid=[2,2,2]" --set "mesh.place=[7,2,5,0,1,6,3,4]"
expect_status 0
same_losses one p 1e-4
