"""Does the real TensorBoard read what a run wrote? Its Python reader, the server that it starts for its pages (Rust), and
log.jsonl must have the same steps and numbers.

    python3 -m venv tb && tb/bin/pip install tensorboard "setuptools<81"
    tb/bin/python bench/tensorboard_read.py RUN_FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import numpy
from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/support"))
from event_steps import flat  # noqa: E402  the names of log.jsonl's numbers


def expected(run):
    """{tag: [(step, number)]} in single precision."""
    tags = {}
    for line in (run / "log.jsonl").open():
        record = json.loads(line)
        for name, number in flat(record).items():
            tag = name if "/" in name else f"step/{name}"
            tags.setdefault(tag, []).append((record["step"], float(numpy.float32(number))))
    return tags


def by_python(run):
    reader = EventAccumulator(str(run / "tensorboard"), size_guidance={SCALARS: 0})
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def by_server(run, port=6199):
    """As its pages ask for them."""
    command = [pathlib.Path(sys.executable).parent / "tensorboard", "--logdir", run, "--port", str(port), "--load_fast",
               "true", "--samples_per_plugin", "scalars=1000000"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://localhost:{port}/data/plugin/scalars"
    try:
        for _ in range(120):
            try:
                tags = json.load(urllib.request.urlopen(f"{address}/tags"))
                if "tensorboard" in tags:
                    break
            except OSError:
                pass
            time.sleep(0.5)
        time.sleep(2)  # it reads on
        tags = json.load(urllib.request.urlopen(f"{address}/tags"))["tensorboard"]
        found = {}
        for tag in tags:
            query = urllib.parse.urlencode({"run": "tensorboard", "tag": tag})
            points = json.load(urllib.request.urlopen(f"{address}/scalars?{query}"))
            found[tag] = [(step, value) for _, step, value in points]
        return found
    finally:
        server.terminate()
        server.wait()


def main():
    run = pathlib.Path(sys.argv[1]).resolve()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    wanted = expected(run)
    for name, found in (("Python reader", by_python(run)), ("server", by_server(run))):
        assert set(found) == set(wanted), f"{name}: tags {set(found) ^ set(wanted)}"
        for tag, points in wanted.items():
            assert found[tag] == points, f"{name}: {tag}: {found[tag][:5]} instead of {points[:5]}"
        print(f"{name}: {len(found)} tags, {sum(map(len, found.values()))} numbers, all as in log.jsonl")


if __name__ == "__main__":
    main()
