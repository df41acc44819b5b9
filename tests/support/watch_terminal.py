"""Runs a command on a terminal of its own, gives it a key or a signal after its first screen, and looks at what it leaves.

    watch_terminal.py KEY_OR_SIGNAL COMMAND...    KEY: a letter, ^C or resize; SIGNAL: TERM

Prints how it ended and what it wrote; ends with 1 where the terminal is not as it was.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time


def read_until(terminal, text, seconds=30):
    end, got = time.time() + seconds, b""
    while time.time() < end and text not in got:
        if select.select([terminal], [], [], 0.1)[0]:
            got += os.read(terminal, 65536)
    return got


def size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    what, command = sys.argv[1], sys.argv[2:]
    terminal, inner = pty.openpty()
    size(terminal, 24, 80)
    before = termios.tcgetattr(inner)

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, preexec_fn=own_terminal)
    got = read_until(terminal, b"ranks in step")
    if what == "resize":
        size(terminal, 10, 30)
        process.send_signal(signal.SIGWINCH)
        narrow = read_until(terminal, b"\033[H", 10)
        rows = narrow.split(b"\033[H")[-1] + read_until(terminal, b"\033[H", 5)
        frame = re.sub(rb"\033\[[0-9;]*[A-Za-z]", b"", rows.split(b"\033[H")[0]).decode()
        longest = max(len(line.strip("\r")) for line in frame.split("\n"))
        print(f"longest line {longest}")
        what = "q"
    if what == "TERM":
        process.send_signal(signal.SIGTERM)
    else:
        os.write(terminal, b"\x03" if what == "^C" else what.encode())
    got += read_until(terminal, b"\033[?1049l", 20)
    status = process.wait(20)
    after = termios.tcgetattr(inner)
    print(f"status {status}")
    assert got.count(b"\033[?1049h") == got.count(b"\033[?1049l") == 1, "the other screen is not left"
    assert got.count(b"\033[?25l") == got.count(b"\033[?25h") == 1, "the cursor is hidden"
    assert got.count(b"\033[?7l") == got.count(b"\033[?7h") == 1, "lines are not broken"
    assert after == before, "the terminal's settings are not as before"


if __name__ == "__main__":
    main()
