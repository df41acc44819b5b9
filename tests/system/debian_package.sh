# slow: makes a chroot
# docs/20-install.md: the .deb of this build, in a chroot of this Debian without compilers: installed as the container does it
# (packaging/apptainer), it trains there, alone, under mpirun of the chroot, and under mpirun of this host.
. "$T3D_SOURCE/tests/support/job.sh"
. "$T3D_SOURCE/tests/support/chroot.sh"
suite=$(. /etc/os-release && [[ ${ID-} == debian ]] && echo "${VERSION_CODENAME-}")
skip() { echo "skipped: $*"; exit 77; }
[[ -n "$suite" ]] || skip "this is no Debian"
[[ -z "${T3D_IN_CHROOT:-}" ]] || skip "already in a chroot"
command -v cpack dpkg-shlibdeps > /dev/null || skip "no cpack or dpkg-shlibdeps"
chroot_can > out.log 2>&1 || skip "$(cat out.log)"
# Mounts of its own, which end with its last process: whoever removes this folder later must not meet them.
if [[ -z "${T3D_OWN_MOUNTS:-}" ]]; then
  unshare --mount true 2> /dev/null || skip "no mounts of its own are allowed here"
  T3D_OWN_MOUNTS=1 exec unshare --mount bash "$0"
fi

build=$(dirname "$T3D_BIN")
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$PWD" > out.log 2>&1 || fail "cpack"
deb=$(echo transformer3d_*.deb)

# The bare system is kept, a copy of it is used.
root=$T3D_SOURCE/build/portability/bare-$suite
chroot_make || skip "no bare $suite"
cp -a "$root" clean
root=$PWD/clean
chroot_settings
chroot_mount
mount_in --bind /tmp tmp # where mpirun and its ranks meet
cp "$deb" "$root/opt/transformer3d.deb"
section() { awk -v name="%$1" '/^%/ { on = $0 == name; next } on' "$T3D_SOURCE/packaging/apptainer/transformer3d.def"; }
section post > post.sh
inside sh < post.sh > out.log 2>&1 || fail "installing in the chroot"
section test > test.sh
inside sh < test.sh > out.log 2>&1 || fail "the container's test"
expect_text "^transformer3d "
readelf -d "$root/usr/bin/transformer3d" | grep -E 'R(UN)?PATH' && fail "the program of the package has a run path"
for tool in cc gcc g++ c++ clang cmake make ninja python3; do
  inside sh -c "command -v $tool" && fail "the chroot has $tool"
done

make_text 20000
mkdir "$root/root/try"
cp text.txt "$root/root/try"
# trains RUN COMMAND...: two steps of an installed input, by the program behind COMMAND
trains() {
  local run=$1
  shift
  "$@" sh -c 'cd /root/try && exec transformer3d /usr/share/transformer3d/inputs/tiny.toml "$@"' sh \
    -d "$run" --set run.steps=2 --set "data.train='text.txt'" --set "data.valid='text.txt'" --set eval.batches=1 \
    --set schedule.warmup_steps=1 --set batch.sequences=4 > out.log 2>&1 || fail "training $run"
  [[ -d $root/root/try/$run/ckpt/step-00000002 ]] || fail "$run has no checkpoint"
}
trains alone inside
trains inner inside OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 --oversubscribe
grep -q '"ranks":2' "$root/root/try/inner/log.jsonl" || grep -q '^ranks = 2' "$root/root/try/inner/plan.toml" || fail "not two ranks"
if [[ $(mpirun --version) == *"Open MPI) 4."* ]]; then
  trains hybrid mpirun -n 2 --oversubscribe chroot "$root"
  grep -q '^ranks = 2' "$root/root/try/hybrid/plan.toml" || fail "not two ranks under this host's mpirun"
else
  echo "mpirun of this host is not Open MPI 4: it did not start the chroot's ranks"
fi
inside sh -c 'gzip -t /usr/share/man/man1/transformer3d.1.gz && bash -n /usr/share/bash-completion/completions/transformer3d' ||
  fail "manual or completion"
inside dpkg -V transformer3d > out.log 2>&1 || fail "installed files differ from the package's"
inside apt-get remove -q -y transformer3d > out.log 2>&1 || fail "removing the package"
inside sh -c 'command -v transformer3d' && fail "transformer3d is still there"
unmount_all
rm -rf clean
