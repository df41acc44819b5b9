#!/usr/bin/env python3
"""Types a line into an interactive shell on a terminal of its own, presses Tab, and waits for what comes.

    press_tab.py SETUP LINE EXPECTED... -- SHELL [OPTIONS]

SETUP is read by the shell first. Ends with 0 as soon as every EXPECTED text stands on the screen behind
the Tab, with 1 and the screen after ten seconds. Only what the shell itself writes counts: what is
typed comes back before the Tab is pressed.
"""
import os
import pty
import select
import signal
import sys
import time

READY = "shell-is-ready"


def read_until(terminal, done, seconds=10):
    """What the shell wrote until done(text), and whether that was reached."""
    text = ""
    end = time.monotonic() + seconds
    while not done(text):
        left = end - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            return text, False
        try:
            text += os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # the shell has ended
            return text, done(text)
    return text, True


def main():
    cut = sys.argv.index("--")
    setup, line, *expected = sys.argv[1:cut]
    shell = sys.argv[cut + 1:]
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", PS1="", PROMPT="", SETUP=os.path.abspath(setup))
        os.execvp(shell[0], shell)
    try:
        # The word is put together by the shell, so that its echo is not taken for it.
        os.write(terminal, b". \"$SETUP\"; echo shell-is''-ready\n")
        screen, reached = read_until(terminal, lambda text: READY in text)
        if reached:
            time.sleep(0.2)  # its line editor starts
            os.write(terminal, line.encode())
            screen, reached = read_until(terminal, lambda text: line in text)
        if reached:
            os.write(terminal, b"\t")
            screen, reached = read_until(terminal, lambda text: all(word in text for word in expected))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not reached:
        print(f"after '{line}' and Tab, {expected} did not come; the screen:\n{screen!r}")
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
