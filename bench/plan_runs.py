"""What benches that start the program share: its launcher, the program in a working folder, an input for it."""
import subprocess

# Of every input: no balancing, no checkpoint before the end, one thread.
QUIET = """[data]
train = "text.bin"
format = "bytes"
[balance]
kind = "off"
[checkpoint]
every_minutes = 0
[debug]
threads = 1
"""


def launcher(ranks):
    return ["mpirun", "-n", str(ranks), "--oversubscribe"] if ranks > 1 else []


class Program:
    def __init__(self, path, work):
        self.path, self.work = path.resolve(), work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "text.bin").write_bytes(bytes(i * 7919 % 251 for i in range(1 << 20)))

    def __call__(self, *command, ranks=1):
        done = subprocess.run(launcher(ranks) + [self.path, *map(str, command)], cwd=self.work, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout
