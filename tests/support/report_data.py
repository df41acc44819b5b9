"""Compares the data in a page with the logs that it was made of: report_data.py PAGE RUN...

Losses, whole numbers and times of ranks must be equal to the last bit, all other numbers in six digits.
"""
import base64
import json
import math
import pathlib
import re
import struct
import sys
import zlib


def decoded(head, count, take):
    """The values of a column; take(part): its next `count` bytes."""
    def planes(first, size):
        parts = [take(first + plane, count) for plane in range(size)]
        return [bytes(part[at] for part in parts) for at in range(count)]

    if head["code"] == "real":
        return [struct.unpack("<d", value)[0] for value in planes(8, 8)]
    if head["code"] == "short":
        return [float(f"{struct.unpack('<f', value)[0]:.6g}") for value in planes(4, 4)]
    values, mean = [], head["first"]
    for value in planes(0, head["planes"]) if head["planes"] else [b""] * count:
        bits = int.from_bytes(value, "little")
        whole = math.floor(mean + 0.5) + ((bits >> 1) ^ -(bits & 1))
        whole = (whole + 2**31) % 2**32 - 2**31
        mean += (whole - mean) * head["takes"]
        values.append(whole / head["per"])
    return values


def columns_of(block, data, rows):
    """{(key, index): {row: value}}"""
    ends, at = [], 0
    for length in block["parts"]:
        ends.append(at)
        at += length
    assert at == len(data), (at, len(data))

    def take(part, count):
        ends[part] += count
        return data[ends[part] - count:ends[part]]

    columns = {}
    for head in block["heads"]:
        where = range(rows)
        if "count" in head:
            bits = take(16, (rows + 7) // 8)
            where = [row for row in range(rows) if bits[row // 8] >> row % 8 & 1]
        columns[head["key"], head.get("index", -1)] = dict(zip(where, decoded(head, len(where), take)))
    return columns


def numbers_of(record):
    """((key, index), value) of all that a page has of a record."""
    for key, value in record.items():
        inner = value.items() if isinstance(value, dict) else [(None, value)]
        for name, item in inner:
            full = key if name is None else f"{key}.{name}"
            if key == "rank_milliseconds" and not value["measured_step"]:
                continue
            if key == "left_out":
                yield (full, -1), len(item)
            elif isinstance(item, list):
                yield from (((full, index), one) for index, one in enumerate(item))
            elif isinstance(item, (int, float)) and not isinstance(item, bool):
                yield (full, -1), item


def with_holes(records):
    """Each record, behind rows of nothing but the first and the last step that are missing before it."""
    before = None
    for record in records:
        first, last = (before or record["step"] - 1) + 1, record["step"] - 1
        yield [{"step": step} for step in sorted({first, last}) if first <= last] + [record]
        before = record["step"]


def expected(key, value):
    exact = key == "loss" or key.startswith("valid_loss") or float(value).is_integer()
    return value if exact else float(f"{value:.6g}")


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    page = json.loads(re.search(r'id="report">(.*?)</script>', text, re.S)[1])
    assert [run["name"] for run in page["runs"]] == sys.argv[2:], [run["name"] for run in page["runs"]]
    compared = 0
    for number, run in enumerate(page["runs"]):
        columns = {}
        for block in ("steps", "ranks"):
            coded = re.search(rf'id="{block}-{number}">(.*?)</script>', text)[1]
            data = zlib.decompress(base64.b64decode(coded, validate=True), -15)
            columns.update(columns_of(run[block], data, run["rows"]))
        lines = (pathlib.Path(run["name"]) / "log.jsonl").read_text().split("\n")[:-1]
        records = [json.loads(line) for line in lines]
        records = [record for one in with_holes(records) for record in one]
        assert len(records) == run["rows"] > 0, (len(records), run["rows"])
        wanted = {}
        for row, record in enumerate(records):
            for place, value in numbers_of(record):
                wanted.setdefault(place, {})[row] = expected(place[0], value)
        assert set(wanted) == set(columns), set(wanted) ^ set(columns)
        for place, values in wanted.items():
            assert values == columns[place], (place, values, columns[place])
            compared += len(values)
    print(f"{compared} numbers of {len(page['runs'])} runs are in {sys.argv[1]}")


if __name__ == "__main__":
    main()
