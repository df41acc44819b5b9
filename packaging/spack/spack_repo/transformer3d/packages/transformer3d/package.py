"""transformer3d from the clone that this recipe lies in; see docs/20-install.md.

    spack repo add packaging/spack/spack_repo/transformer3d
    spack install transformer3d                # branch main of this clone
    spack dev-build transformer3d@main         # the working tree as it is, in the top folder

The dependencies are the rows "build" of jobs/packages.sh (tests/lint/check_packages.py compares them). Not
tried with Spack, for want of one: only that it is Python and that the names are the table's.
"""
import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Transformer3d(CMakePackage):
    """Trains transformer language models over MPI on clusters whose nodes may differ in speed."""

    git = "file://" + str(pathlib.Path(__file__).resolve().parents[6])

    license("Apache-2.0")

    version("main", branch="main")

    variant("cuda", default=False, description="GPU ranks; with NCCL and cuDNN")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("ninja", type="build")

    depends_on("openmpi")
    depends_on("hdf5+hl~mpi")
    depends_on("kokkos")
    depends_on("onednn")
    depends_on("tomlplusplus")
    depends_on("cli11")
    depends_on("fmt")
    depends_on("nlohmann-json")
    depends_on("sentencepiece")
    depends_on("icu4c")
    depends_on("oniguruma")
    depends_on("isa-l")
    depends_on("zstd")

    depends_on("cuda@12.4:", when="+cuda")
    depends_on("nccl", when="+cuda")
    depends_on("cudnn", when="+cuda")

    conflicts("%gcc@:11", msg="C++20 needs gcc 12 or newer")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("T3D_TESTS", False),
            self.define_from_variant("T3D_CUDA", "cuda"),
        ]
