"""Reads what a run wrote for TensorBoard and spreadsheets, with the standard library alone and from the formats'
descriptions, and compares it with log.jsonl: same steps, each once, in order, and the same numbers.

    event_steps.py RUN_FOLDER
"""
import csv
import json
import pathlib
import struct
import sys

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at:at + 8]), "CRC of a length"
        record = data[at + 12:at + 12 + length]
        (crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert crc == masked_crc(record), "CRC of a record"
        yield record
        at += 16 + length


def fields(message):
    """(number, value) of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        wire = key & 7
        if wire == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(wire) or varint()
        assert wire in (1, 2, 5) and at + size <= len(message), "a field"
        yield key >> 3, message[at:at + size]
        at += size


def events(folder):
    """(step, {tag: number}) of each event with numbers; the first records of a file are looked at, too."""
    for path in sorted(folder.glob("*tfevents*")):
        for number, record in enumerate(records(path.read_bytes())):
            event = dict(fields(record))
            if number == 0:
                assert event[3] == b"brain.Event:2", "no file version first"
            if number == 1:
                assert dict(fields(event[7]))[1] == 1, "no start of a session"
            if 5 not in event:
                continue
            values = [dict(fields(value)) for field, value in fields(event[5]) if field == 1]
            yield event[2], {value[1].decode(): struct.unpack("<f", value[2])[0] for value in values}


def flat(record):
    """The numbers of a line of log.jsonl under the names of the other two forms."""
    numbers = {}
    for key, value in record.items():
        if key in ("step", "steps", "rank_milliseconds", "slab_sequences", "left_out", "emulated"):
            continue
        for name, number in value.items() if isinstance(value, dict) else [("", value)]:
            if number is not None:
                numbers[f"{key}/{name}" if name else key] = float(number)
    return numbers


def main():
    run = pathlib.Path(sys.argv[1])
    log = [json.loads(line) for line in (run / "log.jsonl").open()]
    expected = [(record["step"], flat(record)) for record in log]

    found = list(events(run / "tensorboard"))
    assert [step for step, _ in found] == [step for step, _ in expected], "steps of the events"
    for (step, numbers), (_, wanted) in zip(found, expected):
        single = {name if "/" in name else f"step/{name}": struct.unpack("<f", struct.pack("<f", number))[0]
                  for name, number in wanted.items()}
        assert numbers == single, f"step {step}: {numbers} instead of {single}"

    lines = list(csv.DictReader((run / "log.csv").open(newline="")))
    assert [int(line["step"]) for line in lines] == [step for step, _ in expected], "steps of log.csv"
    for line, (step, wanted) in zip(lines, expected):
        numbers = {name: float(text) for name, text in line.items() if text and name not in ("step", "steps")}
        assert numbers == wanted, f"step {step}: {numbers} instead of {wanted}"
    print(f"{len(expected)} steps, {len(expected[-1][1])} numbers in the last")


if __name__ == "__main__":
    main()
