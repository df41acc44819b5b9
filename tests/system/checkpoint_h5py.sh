# People's tools open master.h5: every tensor whole under its name, bit for bit.
set -eu
tool=$(dirname "$T3D_BIN")/tests/t3d_checkpoint_tool
"$tool" save "$PWD/ckpt" 6 7 3
"$tool" save "$PWD/ckpt" 7 7 3  # the same boxes
h5dump -H "$PWD/ckpt/step-00000006/master.h5" > header.txt
grep -q '"blocks.0.attn.qkv.weight"' header.txt
grep -q 'VIRTUAL\|SIMPLE { ( 48, 144 )' header.txt
h5dump -d /norm.scale "$PWD/ckpt/step-00000006/master.h5" | grep -q '(0): '

python=""
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import h5py, numpy' 2> /dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || { echo "python3-h5py is not installed"; exit 77; }
cd /  # the parts are found beside the master, from anywhere
"$python" - "$OLDPWD/ckpt/step-00000006" << 'PYTHON'
import json, os, shutil, sys
import h5py, numpy

folder = sys.argv[1]
manifest = json.load(open(folder + "/MANIFEST.json"))
master = h5py.File(folder + "/master.h5", "r")
assert master.attrs["step"] == 6 and master.attrs["run_id"].decode() == "tool"
assert master["run/input"][()].decode() == "x"
assert manifest["version"] == 2
checked = 0
pieces = {}  # what lies where, by the indexes of the node files
for file in manifest["files"]:
    if "index" in file:
        index = json.load(open(folder + "/" + file["index"]["name"]))
        assert index["file"] == file["name"]
        for name, boxes in index["tensors"].items():
            pieces.setdefault(name, []).extend((file["name"], *box) for box in boxes)
for name, tensor in manifest["tensors"].items():
    if 0 in tensor["shape"]:
        continue
    whole = master[name][...]
    assert list(whole.shape) == tensor["shape"], name
    assert whole.dtype == {"fp32": "<f4", "fp64": "<f8"}[tensor["dtype"]], name
    seen = numpy.zeros(whole.shape, int).reshape(-1, whole.shape[-1])
    for file, row, col, rows, cols, offset, _ in pieces[name]:
        part = numpy.fromfile(folder + "/" + file, whole.dtype,
                              rows * cols, offset=offset).reshape(rows, cols)
        flat = whole.reshape(-1, whole.shape[-1])[row:row + rows, col:col + cols]
        assert part.tobytes() == numpy.ascontiguousarray(flat).tobytes(), name
        seen[row:row + rows, col:col + cols] += 1
        checked += rows * cols
    assert (seen == 1).all(), name
master.close()

# Copied alone, or beside the files of another checkpoint: nothing that passes for a weight.
for place in (folder + "-alone", os.path.dirname(folder) + "/step-00000007"):
    os.makedirs(place, exist_ok=True)
    shutil.copy(folder + "/master.h5", place + "/master.h5")
    with h5py.File(place + "/master.h5", "r") as stray:
        for name, tensor in manifest["tensors"].items():
            if 0 not in tensor["shape"]:
                assert numpy.isnan(stray[name][...]).all(), (place, name)
        assert b"whole folder" in stray.attrs["read_me"]
print(checked, "numbers agree, HDF5", h5py.version.hdf5_version)
PYTHON
