"""Programs that Ctrl-C is to stop: what they say, and how much they still computed.

Time is counted in seconds of the program's own, which do not depend on what else the machine does.
Called by the tests of long work; a program imports `signal` first, says "begins" when it is about to
work, "stopped" and its `time.process_time()` when it was stopped, and then whatever it likes.
"""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="nothing tells the time of another process"
)

# Whoever starts the tests in the background has signals ignored, and children inherit that.
HEAD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


def seconds_of(process: int) -> float:
    """What a process has computed so far, on all its threads; more than anything if it has ended."""
    try:
        # After the name, which may hold anything but ends with the last bracket.
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return math.inf
    if fields[0] == "Z":
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(program: str, *arguments: str) -> tuple[float, list[str]]:
    """Stops a program in the middle of its work; the seconds it took, and what it said then."""
    command = [sys.executable, "-c", HEAD + program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        begun = seconds_of(process.pid)
        while seconds_of(process.pid) < begun + 0.2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        # Afterwards: what it computes between the two lines is then never held against it.
        sent = seconds_of(process.pid)
        said = process.stdout.read().splitlines()
    assert process.returncode == 0 and said[0].startswith("stopped "), said
    return float(said[0].split()[1]) - sent, said[1:]
