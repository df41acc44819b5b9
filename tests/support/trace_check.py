"""Is a trace of a run on one host true? Valid JSON, nested spans, the steps of the window and no others, the bytes of
log.jsonl, collectives that all their ranks have and that nobody leaves before everybody has come.

    trace_check.py RUN_FOLDER FIRST LAST RANKS [FILE]
"""
import collections
import json
import pathlib
import statistics
import sys

ROUNDING = 0.0021  # microseconds: times are written in whole nanoseconds


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
            if event["pid"] == 0 and event["cat"] == "collective" and event["args"]["step"] == step:
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
        if event["cat"] == "collective":
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


def main():
    run, (first, last, ranks) = pathlib.Path(sys.argv[1]), map(int, sys.argv[2:5])
    trace = json.loads((run / (sys.argv[5] if len(sys.argv) > 5 else "trace.json")).read_text())
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
    collectives, spread = check_collectives(events, error)
    kinds = collections.Counter(e["cat"] for e in events)
    print(f"{len(events)} spans ({dict(kinds)}), {collectives} collectives; clocks within {error:.1f} us; ends of an "
          f"all_reduce {spread:.1f} us apart (median)")


if __name__ == "__main__":
    main()
