"""What bench/plan_accuracy.py and bench/plan_decision.py share: the program in a working folder, and an input for it."""
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


class Program:
    def __init__(self, path, work):
        self.path, self.work = path.resolve(), work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "text.bin").write_bytes(bytes(i * 7919 % 251 for i in range(1 << 20)))

    def __call__(self, *command, ranks=1):
        launch = ["mpirun", "-n", str(ranks), "--oversubscribe"] if ranks > 1 else []
        done = subprocess.run(launch + [self.path, *map(str, command)], cwd=self.work, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout
