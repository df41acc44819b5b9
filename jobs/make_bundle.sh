#!/usr/bin/env bash
# A self-contained folder of the program for a machine without MPI, HDF5 and the rest (a bare GPU
# machine): executables, their libraries but CUDA's and glibc's, and Open MPI's run-time parts.
#
#   jobs/make_bundle.sh [BUILD=build/cuda] [OUT=build/bundle]   OUT and OUT.tar.gz, 64 MiB at most packed
#   OUT/run.sh mpirun -n 8 transformer3d input.toml             there
#
# CUDA's libraries (cuBLASLt, NCCL, cuDNN) come from that machine: /usr/local/cuda, or the wheels
# of its python3. Its glibc must be this machine's or newer. Open MPI 4.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/cuda}
out=${2:-build/bundle}
limit_mib=64
programs=()
for program in transformer3d tests/t3d_gpu_tests bench/t3d_bench_gpu; do
  [[ -x $build/$program ]] && programs+=("$build/$program")
done
if ((${#programs[@]} == 0)); then
  echo "make_bundle: no transformer3d, tests/t3d_gpu_tests or bench/t3d_bench_gpu in $build" >&2
  exit 66
fi
where() { ompi_info --path "$1" | awk '{print $2}'; }
if ! [[ $(ompi_info --version) =~ v4\. ]]; then
  echo "make_bundle: only tried with Open MPI 4; here is $(ompi_info --version | head -n 1)" >&2
  exit 69
fi
rm -rf "$out" "$out.tar.gz"
mkdir -p "$out/bin" "$out/lib/openmpi3" "$out/lib/pmix" "$out/share"
cp "${programs[@]}" "$out/bin/"
for helper in mpirun orted; do # by the names that they look for
  cp "$(readlink -f "$(command -v $helper)")" "$out/bin/$helper"
done
cp -r "$(where pkgdatadir)" "$out/share/openmpi"
rm -rf "$out"/share/openmpi/*wrapper* "$out"/share/openmpi/*-data.txt "$out"/share/openmpi/*.supp
# What talks within one machine; fabrics' components would draw in their drivers' libraries.
find "$(where pkglibdir)" -name 'mca_*.so' |
  grep -vE 'ucx|ofi|psm|libfabric|hcoll|portals|usnic|openib|_mtl_|cuda|_memheap_|_scoll_|_spml_|_sshmem_|_atomic_' |
  xargs cp -t "$out/lib/openmpi3"
# PMIx has its own components, beside its library.
pmix=$(dirname "$(readlink -f "$(ldconfig -p | awk '/libpmix\.so\.2 / {print $NF; exit}')")")
cp "$pmix"/pmix/*.so "$out/lib/pmix/" 2> /dev/null || true

# Libraries of everything so far, again and again until nothing new comes.
foreign='/(ld-linux[^/]*|lib(c|m|dl|pthread|rt|resolv|util|cublas[^/]*|nccl[^/]*|cudnn[^/]*|cudart[^/]*|cuda[^/]*|nvrtc[^/]*|nvJitLink[^/]*|nvidia[^/]*))\.so'
everything() { find "$out" -type f \( -name '*.so*' -o -path '*/bin/*' \) -print0; }
while :; do
  before=$(find "$out/lib" | wc -l)
  everything | xargs -0 -n 1 ldd 2> /dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    { grep -vE "$foreign" || true; } | while read -r library; do cp -nL "$library" "$out/lib/"; done
  [[ $(find "$out/lib" | wc -l) == "$before" ]] && break
done
everything | xargs -0 chmod u+w
everything | xargs -0 strip --strip-unneeded

cat > "$out/run.sh" <<'RUN'
#!/bin/sh
# run.sh NAME ARGS...: a program of this bundle (transformer3d, mpirun -n 4 transformer3d, ...), or
# another one with the bundle's settings.
here=$(cd "$(dirname "$0")" && pwd) || exit 66
add() { for folder in "$@"; do [ -d "$folder" ] && cuda="$cuda:$folder"; done; }
cuda=""
add /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib /usr/local/cuda/lib
# Where Python packages bring CUDA's libraries (cuDNN and NCCL are often nowhere else).
IFS='
'
add $(python3 - 2> /dev/null <<'PY'
import glob, site, sys
roots = site.getsitepackages() + [site.getusersitepackages()] + sys.path
print("\n".join(sorted({p for r in roots if r for p in glob.glob(r + "/nvidia/*/lib")})))
PY
)
unset IFS
add /usr/local/nvidia/lib64 /usr/lib/nvidia # the driver's own, in some containers
export LD_LIBRARY_PATH="$here/lib$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PATH="$here/bin:$PATH"
# Open MPI was built for other folders: every one is told anew.
export OPAL_PREFIX="$here" OPAL_BINDIR="$here/bin" OPAL_LIBDIR="$here/lib" OPAL_DATADIR="$here/share"
export OPAL_PKGLIBDIR="$here/lib/openmpi3" OPAL_PKGDATADIR="$here/share/openmpi"
export OMPI_MCA_mca_base_component_path="$here/lib/openmpi3"
export PMIX_MCA_mca_base_component_path="$here/lib/pmix"
# One machine, more ranks than cores, as root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm=isolated OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none # containers forbid it
exec "$@"
RUN
chmod +x "$out/run.sh"

tar -C "$(dirname "$out")" -c "$(basename "$out")" | gzip -9 > "$out.tar.gz"
bytes=$(stat -c %s "$out.tar.gz")
echo "$out: $(du -sm "$out" | cut -f1) MiB; $out.tar.gz: $(((bytes + 1048575) / 1048576)) MiB"
if ((bytes > limit_mib * 1048576)); then
  echo "make_bundle: more than $limit_mib MiB packed; the largest files:" >&2
  find "$out" -type f -printf '%s %p\n' | sort -rn | sed -n 1,10p >&2
  exit 74
fi
