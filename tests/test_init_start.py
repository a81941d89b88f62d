"""How warren-init tells of a command's start: the program itself, without a sandbox around it.

A START may let the news of the start wait for what follows, so that one wake-up tells the daemon of a whole short command.
"""
import contextlib
import pathlib
import socket
import struct
import subprocess

import pytest

from harness import BUILD, DEADLINE, until

START, ERROR, STARTED, OUTPUT, EXITED = 1, 65, 66, 67, 69
ARGV, ENV, STATE, STARTED_MS, ENDED_MS = 1, 2, 20, 24, 25
HEADER = struct.Struct("<IBBHQ")
LONG_MS = 50  # what a start may wait here; init bounds it


def field(tag, value):
    return struct.pack("<BI", tag, len(value)) + value


def fields(payload):
    at, found = 0, {}
    while at < len(payload):
        tag, n = struct.unpack_from("<BI", payload, at)
        found.setdefault(tag, payload[at + 5:at + 5 + n])
        at += 5 + n
    return found


class Init:
    def __init__(self, directory):
        self.path = str(directory / "init.sock")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path)
            s.listen(8)
            self.process = subprocess.Popen([BUILD / "warren-init", "--listen", str(s.fileno())], pass_fds=[s.fileno()])

    def start(self, *argv, wait_ms=0):
        payload = b"".join(field(ARGV, a.encode()) for a in argv) + field(ENV, b"PATH=/usr/bin:/bin")
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(DEADLINE)
        s.connect(self.path)
        s.sendall(HEADER.pack(len(payload), START, 0, 0, wait_ms) + payload)
        return s

    def close(self):
        self.process.kill()
        self.process.wait(DEADLINE)


def frames(s):
    """Types and fields as they come, to the end of the stream."""
    with s, s.makefile("rb") as f:
        while head := f.read(HEADER.size):
            n, kind, _, _, _ = HEADER.unpack(head)
            body = f.read(n)
            yield kind, body if kind == OUTPUT else fields(body)


def number(of, tag):
    return struct.unpack("<Q", of[tag])[0]


def told_running(started):
    return number(started, STATE) == 0


@pytest.fixture
def init(tmp_path):
    with contextlib.closing(Init(pathlib.Path(tmp_path))) as i:
        yield i


def test_a_start_is_told_at_once_unless_it_may_wait(init):
    events = frames(init.start("sleep", "1000"))
    kind, started = next(events)
    assert kind == STARTED and told_running(started)
    events.close()


def test_a_short_command_is_told_of_in_one_piece(init):
    def short():
        (first, started), (last, ended) = frames(init.start("true", wait_ms=LONG_MS))
        assert (first, last) == (STARTED, EXITED)
        short = number(ended, ENDED_MS) - number(ended, STARTED_MS) < LONG_MS / 2  # on a busy machine it may not be
        assert not (short and told_running(started))
        return short
    for _ in range(20):
        until(short, "a short command")


def test_a_long_command_is_told_of_soon(init):
    events = frames(init.start("sleep", "1000", wait_ms=LONG_MS))
    kind, started = next(events)
    assert kind == STARTED and told_running(started)
    events.close()


def test_the_first_output_brings_the_start_along(init):
    events = frames(init.start("sh", "-c", "echo hello; exec sleep 1000", wait_ms=LONG_MS))
    assert next(events)[0] == STARTED
    assert next(events) == (OUTPUT, b"hello\n")
    events.close()


def test_nobody_makes_a_start_wait_for_long(init):
    events = frames(init.start("sleep", "1000", wait_ms=2**63))
    assert next(events)[0] == STARTED
    events.close()


def test_a_program_that_is_not_there_is_told_of(init):
    (kind, _), = frames(init.start("/no/such/program", wait_ms=LONG_MS))
    assert kind == ERROR
