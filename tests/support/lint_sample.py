"""Which of many slow checks run today."""
import datetime
import os


def todays_sample(items):
    """With T3D_LINT_SAMPLE=N every N-th item, others every day; all of them without it or with T3D_LINT_ALL=1."""
    every = int(os.environ.get("T3D_LINT_SAMPLE", "1"))
    if every < 2 or os.environ.get("T3D_LINT_ALL") == "1":
        return items
    first = datetime.date.today().toordinal() % every
    print(f"of {len(items)}, number {first + 1} and every {every}. behind it")
    return items[first::every]
