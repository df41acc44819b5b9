"""Is a trace of a run on one host true? Valid JSON, nested spans, the steps of the window and no others, the bytes of
log.jsonl, collectives that all their ranks have and that nobody leaves before everybody has come. Streams of GPU ranks: phases
fill their steps, which lie where the host says (those of emulated ones exactly there), and take as long as log.jsonl says of
the device.

    trace_check.py RUN_FOLDER FIRST LAST RANKS [FILE] [--gpus RANK,RANK]
"""
import argparse
import collections
import json
import pathlib
import statistics

ROUNDING = 0.0021  # microseconds: times are written in whole nanoseconds
COLLECTIVES = ("collective", "communication")  # on the host; on a stream of their own
# Classes of rank_milliseconds; "other" is the rest. A stream that waits computes nothing.
CLASSES = {"matmul": "matmul", "head": "matmul", "attention": "attention"}


def check_nesting(events):
    threads = collections.defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append(event)
    for (rank, thread), spans in threads.items():
        spans.sort(key=lambda e: (e["ts"], -e["dur"]))
        open_ends = []
        for span in spans:
            while open_ends and span["ts"] >= open_ends[-1] - ROUNDING:
                open_ends.pop()
            end = span["ts"] + span["dur"]
            assert not open_ends or end <= open_ends[-1] + ROUNDING, f"rank {rank}, thread {thread}: {span} does not nest"
            open_ends.append(end)


def check_steps(events, first, last, ranks):
    wanted = list(range(first, last + 1))
    for rank in range(ranks):
        steps = [e for e in events if e["pid"] == rank and e["cat"] == "step"]
        assert [e["args"]["step"] for e in steps] == wanted, f"rank {rank}: steps {[e['args']['step'] for e in steps]}"
    begin = min(e["ts"] for e in events if e["cat"] == "step")
    for event in events:
        assert event["args"]["step"] in wanted or event["cat"] == "phase", f"a step outside of the window: {event}"
        assert event["ts"] >= begin - 1000, f"before the window: {event}"


def check_log(run, events, first, last):
    log = {record["step"]: record for record in map(json.loads, (run / "log.jsonl").open())}
    for step in range(first, last + 1):
        counted = collections.Counter()
        for event in events:
            if event["pid"] == 0 and event["cat"] in COLLECTIVES and event["args"]["step"] == step:
                counted[event["args"]["axis"]] += event["args"]["bytes"]
        counted = {axis: bytes for axis, bytes in counted.items() if bytes}
        assert counted == log[step]["bytes_by_axis"], f"step {step}: {counted}, log.jsonl {log[step]['bytes_by_axis']}"
    traced, logged = collections.Counter(), collections.Counter()
    for event in events:
        if event["pid"] == 0 and event["cat"] == "phase":
            traced[event["name"]] += event["dur"] / 1e6
    for step in range(first, last + 1):
        logged.update(log[step]["phase_seconds"])
    for phase in set(traced) | set(logged):
        assert abs(traced[phase] - logged[phase]) < 0.002 + 0.1 * logged[phase], \
            f"{phase}: {traced[phase]} s, log.jsonl {logged[phase]}"


def members(text):
    ranks = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        ranks += range(int(low), int(high or low) + 1)
    return ranks


def check_collectives(events, error):
    groups = collections.defaultdict(dict)
    for event in events:
        if event["cat"] in COLLECTIVES:
            key = tuple(event["args"][part] for part in ("axis", "ranks", "group", "number"))
            assert event["pid"] not in groups[key], f"twice: {key}"
            groups[key][event["pid"]] = event
    spreads = []
    for key, by_rank in groups.items():
        assert sorted(by_rank) == members(key[1]), f"{key} is only on ranks {sorted(by_rank)}"
        assert len({e["name"] for e in by_rank.values()}) == 1, f"{key}: different verbs"
        verb = next(iter(by_rank.values()))["name"]
        if verb in ("all_reduce", "barrier"):  # everybody needs everybody
            last_start = max(e["ts"] for e in by_rank.values())
            ends = [e["ts"] + e["dur"] for e in by_rank.values()]
            assert min(ends) >= last_start - 2 * error - ROUNDING, f"{key}: left before all had come"
            spreads.append(max(ends) - min(ends))
    assert spreads, "no all_reduce"
    for event in events:
        if event["cat"] == "wait":
            key = tuple(event["args"][part] for part in ("axis", "ranks", "group", "number"))
            work = groups[key][event["pid"]]
            assert event["ts"] + event["dur"] >= work["ts"] + work["dur"] - ROUNDING, f"a wait before its end: {event}"
    return len(groups), statistics.median(spreads)


def check_stream(events, rank, first, last, error):
    """The compute stream of a GPU rank by itself and beside its host."""
    steps = {e["args"]["step"]: e for e in events if e["pid"] == rank and e["cat"] == "stream step"}
    assert list(steps) == list(range(first, last + 1)), f"rank {rank}: its stream has steps {list(steps)}"
    end_of_step = -float("inf")
    for number, step in steps.items():
        end = step["ts"] + step["dur"]
        assert step["ts"] >= end_of_step - ROUNDING, f"rank {rank}: {step} overlaps the step before"
        phases = [e for e in events if e["pid"] == rank and e["cat"] == "stream" and e["args"]["step"] == number]
        end_of_phase = step["ts"]
        for phase in sorted(phases, key=lambda e: e["ts"]):
            assert abs(phase["ts"] - end_of_phase) <= ROUNDING, f"rank {rank}: {phase} does not follow the one before"
            end_of_phase = phase["ts"] + phase["dur"]
        assert abs(end_of_phase - end) <= ROUNDING, f"rank {rank}: the phases of step {number} do not fill it"
        end_of_step = end
    # The host starts a step in its span of the step before, and cannot end its own span without the device's report.
    hosts = {e["args"]["step"]: e for e in events if e["pid"] == rank and e["cat"] == "step"}
    for number, step in steps.items():
        earliest = hosts[max(first, number - 1)]["ts"]
        latest = hosts[number]["ts"] + hosts[number]["dur"]
        assert step["ts"] >= earliest - error - ROUNDING, f"rank {rank}: {step} begins before the host's at {earliest} us"
        assert step["ts"] + step["dur"] <= latest + error + ROUNDING, f"rank {rank}: {step} ends after the host's at {latest} us"


def check_waits(events, rank, error):
    """An emulated GPU is where its host is: while the host waits for a collective that the stream waits for, so does the stream."""
    on_stream = [e for e in events if e["pid"] == rank and e["cat"] == "stream" and e["name"] == "waiting"]
    compared = 0
    for wait in (e for e in events if e["pid"] == rank and e["cat"] == "wait"):
        end = wait["ts"] + wait["dur"]
        for stream in on_stream:
            end_of_stream = stream["ts"] + stream["dur"]
            if min(end, end_of_stream) - max(wait["ts"], stream["ts"]) > wait["dur"] / 2:
                slack = error + ROUNDING
                assert stream["ts"] <= wait["ts"] + slack and end <= end_of_stream + slack, f"rank {rank}: {wait} is not inside of {stream}"
                compared += 1
    return compared


def check_device_times(run, events, rank, first, last, stretch):
    """Sums of the stream's phases are the times of the rank in log.jsonl, which has four digits. `stretch`: by how much of itself a
    time may be longer or shorter in the trace, for the errors of clocks at both ends of the window."""
    compared = set()
    for record in map(json.loads, (run / "log.jsonl").open()):
        logged = record.get("rank_milliseconds", {"measured_step": 0})
        step = logged["measured_step"]
        if not first <= step <= last:
            continue
        traced = collections.Counter()
        for event in events:
            if event["pid"] == rank and event["cat"] == "stream" and event["args"]["step"] == step and event["name"] != "waiting":
                traced[CLASSES.get(event["name"], "other")] += event["dur"] / 1e3
        traced["own"] = sum(traced.values())
        for name in ("matmul", "attention", "other", "own"):
            assert abs(traced[name] - logged[name][rank]) <= 0.01 + (0.0005 + stretch) * logged[name][rank], \
                f"rank {rank}, step {step}, {name}: {traced[name]} ms in the trace, {logged[name][rank]} ms in log.jsonl"
        compared.add(step)
    assert compared, f"rank {rank}: log.jsonl has times of none of the steps"


def check_gpus(run, events, about, ranks, gpus, first, last):
    errors = about.get("device_clock_error_us_by_rank", [None] * ranks)
    assert [rank for rank, error in enumerate(errors) if error is not None] == gpus, f"clocks of devices: {errors}"
    waits = 0
    window = max(e["ts"] + e["dur"] for e in events if e["cat"] == "step")
    for rank in gpus:
        stretch = 2 * (about["clock_error_us_by_rank"][rank] + errors[rank]) / window
        check_stream(events, rank, first, last, errors[rank])
        check_device_times(run, events, rank, first, last, stretch)
        waits += check_waits(events, rank, errors[rank])
    assert waits > 0 or not gpus, "no wait to compare"
    assert all(e["pid"] in gpus for e in events if e["cat"] in ("stream", "stream step", "communication")), "streams of a CPU rank"
    return max((errors[rank] for rank in gpus), default=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=pathlib.Path)
    for name in ("first", "last", "ranks"):
        parser.add_argument(name, type=int)
    parser.add_argument("file", nargs="?", default="trace.json")
    parser.add_argument("--gpus", type=lambda text: [int(rank) for rank in text.split(",")], default=[])
    arguments = parser.parse_args()
    run, first, last, ranks = arguments.run, arguments.first, arguments.last, arguments.ranks
    trace = json.loads((run / arguments.file).read_text())
    about = trace["otherData"]
    assert about["steps"] == [first, last], about
    error = about["clock_error_us"]
    for offset, own in zip(about["clock_offset_us_by_rank"], about["clock_error_us_by_rank"], strict=True):
        assert abs(offset) <= own, f"one host has one clock: offset {offset}, error {own} us"
    for event in trace["traceEvents"]:
        assert event["ph"] in "XM" and {"name", "pid", "tid"} <= event.keys(), event
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["pid"] for e in events} == set(range(ranks)), "ranks"
    assert all(e["dur"] >= 0 for e in events), "a span ends before it begins"
    check_nesting(events)
    check_steps(events, first, last, ranks)
    check_log(run, events, first, last)
    device_error = check_gpus(run, events, about, ranks, arguments.gpus, first, last)
    collectives, spread = check_collectives(events, error + device_error)
    kinds = collections.Counter(e["cat"] for e in events)
    print(f"{len(events)} spans ({dict(kinds)}), {collectives} collectives; clocks within {error:.1f} us, of devices "
          f"{device_error:.1f} us; ends of an all_reduce {spread:.1f} us apart (median)")


if __name__ == "__main__":
    main()
