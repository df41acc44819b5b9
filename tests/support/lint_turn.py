"""Which of many slow checks run at this commit."""
import os
import pathlib
import subprocess


def with_turn(items):
    """With T3D_LINT_SAMPLE=N every N-th item, others at each commit (turn.sh); all of them without it."""
    every = int(os.environ.get("T3D_LINT_SAMPLE", "1"))
    if every < 2:
        return items
    script = pathlib.Path(__file__).parent / "turn.sh"
    turn = subprocess.run([script, str(every)], check=True, capture_output=True, text=True).stdout.strip()
    if turn == "all":
        return items
    print(f"of {len(items)}, number {int(turn) + 1} and every {every}. behind it")
    return items[int(turn)::every]
