#!/usr/bin/env bash
# A self-contained folder of the program for a machine without MPI, HDF5 and the rest (a bare GPU
# machine): executables, their libraries but CUDA's and glibc's, and Open MPI's run-time parts.
#
#   jobs/make_bundle.sh [BUILD=build/cuda] [OUT=bundle]    also packed: OUT.tar.gz, 64 MiB at most
#   OUT/run.sh mpirun -n 8 transformer3d input.toml        there
#
# CUDA's libraries (cuBLASLt, NCCL, cuDNN) come from that machine: /usr/local/cuda, or the wheels
# of its python3.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/cuda}
out=${2:-bundle}
limit_mib=64
[[ -x $build/transformer3d ]] || { echo "make_bundle.sh: no $build/transformer3d" >&2; exit 66; }
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib" "$out/share"

for program in transformer3d tests/t3d_gpu_tests bench/t3d_bench_gpu; do
  [[ -x $build/$program ]] && cp "$build/$program" "$out/bin/"
done
mpirun=$(readlink -f "$(command -v mpirun)")
cp "$mpirun" "$out/bin/mpirun"
for helper in orted prted prte; do
  path=$(command -v $helper) && cp "$(readlink -f "$path")" "$out/bin/$helper"
done || true
components=$(ompi_info --path pkglibdir | awk '{print $2}')
cp -r "$(ompi_info --path pkgdatadir | awk '{print $2}')" "$out/share/openmpi"
mkdir -p "$out/lib/openmpi3"
# What talks within one machine; fabrics' components would draw in their drivers' libraries.
find "$components" -name 'mca_*.so' | grep -vE 'ucx|ofi|psm|libfabric|_hcoll|portals|usnic|openib|_mtl_|cuda' |
  xargs -I{} cp {} "$out/lib/openmpi3/"

# Libraries of everything so far, again and again until nothing new comes.
foreign='/(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libutil\.|libcublas|libnccl|libcudnn|libcudart|libcuda\.)'
while :; do
  before=$(ls "$out/lib" | wc -l)
  find "$out" -type f \( -name '*.so*' -o -path '*/bin/*' \) -print0 | xargs -0 ldd 2> /dev/null |
    awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | grep -vE "$foreign" |
    while read -r library; do cp -nL "$library" "$out/lib/$(basename "$library")"; done || true
  [[ $(ls "$out/lib" | wc -l) == "$before" ]] && break
done
find "$out" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec strip --strip-unneeded {} + 2> /dev/null || true

cat > "$out/run.sh" <<'RUN'
#!/usr/bin/env bash
# run.sh NAME ARGS...: a program of this bundle (transformer3d, mpirun -n 4 transformer3d, ...).
here=$(cd "$(dirname "$0")" && pwd)
cuda=$(ls -d /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib /usr/local/cuda/lib 2> /dev/null | tr '\n' ':')
wheels=$(python3 - 2> /dev/null <<'PY'
import glob, site, sys
roots = site.getsitepackages() + [site.getusersitepackages()] + sys.path
print(":".join(sorted({p for r in roots if r for p in glob.glob(r + "/nvidia/*/lib")})))
PY
)
export PATH="$here/bin:$PATH" OPAL_PREFIX="$here" OPAL_LIBDIR="$here/lib" OPAL_BINDIR="$here/bin"
export OPAL_DATADIR="$here/share" OPAL_PKGLIBDIR="$here/lib/openmpi3" OPAL_PKGDATADIR="$here/share/openmpi"
export OMPI_MCA_mca_base_component_path="$here/lib/openmpi3"
export LD_LIBRARY_PATH="$here/lib:$cuda$wheels${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm=isolated OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
exec "$@"
RUN
chmod +x "$out/run.sh"

tar -C "$(dirname "$out")" -c "$(basename "$out")" | gzip -9 > "$out.tar.gz"
size=$(du -sm "$out.tar.gz" | cut -f1)
echo "$out: $(du -sm "$out" | cut -f1) MiB, $out.tar.gz: $size MiB"
if ((size > limit_mib)); then
  echo "make_bundle.sh: more than $limit_mib MiB packed; the largest:" >&2
  find "$out" -type f -printf '%s %p\n' | sort -rn | head >&2
  exit 74
fi
