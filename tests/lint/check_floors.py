#!/usr/bin/env python3
"""A file includes only what stands below it, foreign headers stay in the folders that own them, and
nothing depends on CUDA by conditional compilation. Nobody waits for a whole GPU but its owner at the end.

    check_floors.py [SOURCE_FOLDER]

The floors are those of docs/10-developing.md. Prints each wrong include as FILE:LINE and ends with 1.
"""
import pathlib
import re
import sys

# From the ground up; folders of one line may not include each other.
FLOORS = [
    {"core"},
    {"device"},
    {"comm", "ops"},
    {"tensor3d"},
    {"hetero", "layers", "io", "tokenizer", "data"},
    {"config", "record"},
    {"forecast"},
    {"train", "sched"},
    {"run"},
    {"tools"},
    {"app"},
]
# Exceptions on one floor: data and tokenizer read files through io, data uses tokenizers.
SIDEWAYS = {("data", "io"), ("tokenizer", "io"), ("data", "tokenizer")}

# (pattern of the header, where it may be included, its name)
OWNERS = [
    (r"mpi\.h", ["src/comm/mpi/", "src/app/main.cpp"], "MPI"),
    (r"Kokkos_.*|Kokkos/.*", ["src/ops/cpu/"], "Kokkos"),
    (r"(oneapi/)?dnnl.*", ["src/ops/cpu/"], "oneDNN"),
    (r"hdf5.*|H5.*", ["src/io/"], "HDF5"),
    (r"toml\+\+/.*|toml\.hpp", ["src/config/"], "toml++"),
    (r"CLI/.*", ["src/app/"], "CLI11"),
    (r"zstd\.h", ["src/data/"], "Zstandard"),
    (r"nccl\.h", ["src/comm/nccl/"], "NCCL"),
    (r"nvtx3/.*", ["src/device/cuda/"], "NVTX"),
    (r"cuda.*|cublas.*|cudnn.*|cub/.*", ["src/device/cuda/", "src/ops/cuda/", "src/comm/nccl/"], "CUDA"),
]
# Whether there is a GPU back end is CMake's choice between two files.
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b(.*)")
GPU_FOLDERS = ("src/device/cuda/", "src/ops/cuda/", "src/comm/nccl/")
# A step waits for queues and events, never for all of a GPU.
WHOLE_GPU = re.compile(r"\bcudaDeviceSynchronize\b|\bcudaThreadSynchronize\b")
WHOLE_GPU_OWNER = "src/device/cuda/cuda_device.cpp"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def floor_of(folder):
    for number, names in enumerate(FLOORS):
        if folder in names:
            return number
    return None


LIBRARY = re.compile(r"t3d_add_(?:plain_)?library\((\w+)((?:\s+DEPENDS(?:\s+[a-z0-9_]+)+)?)")
# A training job carries no planning with it.
NEVER_LINKED = {("run", "forecast"), ("run", "tools"), ("train", "sched")}


def linked(root):
    """What each folder's library links, directly and through others."""
    text = (root / "src/CMakeLists.txt").read_text()
    direct = {name: set(rest.split()[1:]) for name, rest in LIBRARY.findall(text)}

    def all_of(name):
        return direct.get(name, set()).union(*(all_of(other) for other in direct.get(name, set())))

    return {name: all_of(name) for name in direct}


def faults(root):
    for folder in sorted(path for path in (root / "src").rglob("*") if path.is_dir()):
        if not (folder / "README.md").is_file():
            yield f"{folder.relative_to(root)}: has no README.md that says what belongs there"
    links = linked(root)
    for own, below in links.items():
        for target in sorted(below):
            if floor_of(target) is None or floor_of(own) is None or floor_of(target) > floor_of(own):
                yield f"src/CMakeLists.txt: {own} links {target}, which does not stand below it"
            if (own, target) in NEVER_LINKED:
                yield f"src/CMakeLists.txt: {own} links {target}"
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".hpp", ".cpp", ".h", ".cu", ".cuh"}:
            continue
        name = path.relative_to(root).as_posix()
        own = name.split("/")[1]
        if floor_of(own) is None:
            yield f"{name}: folder src/{own} has no floor; add it to {pathlib.Path(__file__).name}"
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            condition = CONDITION.match(line)
            if condition and (name.startswith(GPU_FOLDERS)
                              or re.search("CUDA|NCCL|NVCC", condition[2], re.I)):
                yield f"{name}:{number}: conditional compilation; let CMake choose between two files"
            if WHOLE_GPU.search(line) and name != WHOLE_GPU_OWNER:
                yield f"{name}:{number}: waits for a whole GPU; wait for a queue or an event"
            found = INCLUDE.match(line)
            if not found:
                continue
            header = found[2]
            for pattern, places, library in OWNERS:
                if re.fullmatch(pattern, header) and not name.startswith(tuple(places)):
                    yield f"{name}:{number}: {library} header <{header}> belongs in {' or '.join(places)}"
            target = header.split("/")[0]
            if found[1] == "<" or floor_of(target) is None or target == own:
                continue
            if target not in links.get(own, set()) and name != "src/app/main.cpp":
                yield f"{name}:{number}: {own} includes {header}, and does not link src/{target}"
            if floor_of(target) > floor_of(own):
                yield f"{name}:{number}: {own} includes {header}, which stands above it"
            elif floor_of(target) == floor_of(own) and (own, target) not in SIDEWAYS:
                yield f"{name}:{number}: {own} includes {header}, its neighbour on the same floor"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(faults(root))
    print("\n".join(found) if found else "every include points downward")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
