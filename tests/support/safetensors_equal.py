"""safetensors_equal.py A B: says which tensors of two files of safetensors differ, bit by bit; ends with 1 if any do."""
import json
import struct
import sys


def tensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length:]
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


first, second = tensors(sys.argv[1]), tensors(sys.argv[2])
faults = [f"{name} is in one alone" for name in sorted(set(first) ^ set(second))]
faults += [f"{name} differs" for name in sorted(set(first) & set(second)) if first[name] != second[name]]
print("\n".join(faults) or f"{len(first)} tensors are equal")
sys.exit(1 if faults else 0)
