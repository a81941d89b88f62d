"""Tables and colours of the `warren` command: on a terminal, in a file, as asked for."""
import fcntl
import os
import re
import struct
import termios

import pytest

from harness import BUILD
from test_cli import Terminal

COLOUR = re.compile(rb"\x1b\[[0-9]*m")


class Narrow(Terminal):
    """60 columns from the first moment on."""
    env = {}

    def resize(self, rows, cols):
        """It has its size."""

    def exec(self, daemon, args):
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        os.execve(str(BUILD / "warren"), ["warren", *args], {**daemon.cli_environment(), **self.env})

    def all(self):
        assert self.wait() == 0
        return self.seen


class NoColour(Narrow):
    env = {"NO_COLOR": "1"}


class Dumb(Narrow):
    env = {"TERM": "dumb"}


@pytest.fixture
def long(api):
    """A sandbox whose row is far wider than 60 columns."""
    s = api.create(image="tiny", name="long-row", metadata={"purpose": "x" * 100})
    yield s
    api.delete(s["id"])


def show(kind, daemon, *args):
    t = kind(daemon, "ls", "--metadata", "purpose=" + "x" * 100, *args)
    return t.all()


def test_a_table_fits_the_terminal(daemon, long):
    seen = show(Narrow, daemon)
    lines = COLOUR.sub(b"", seen).decode().replace("\r", "").splitlines()
    row = next(line for line in lines if long["id"] in line)
    assert "..." in row and "running" in row, "what one copies and looks for stays whole"
    assert "x" * 20 not in row
    assert b"\x1b[32mrunning\x1b[0m" in seen


def test_a_file_gets_all_of_it_without_colour(daemon, long):
    out = daemon.cli("ls").stdout
    assert "x" * 100 in out and "\x1b" not in out
    assert "\x1b[32mrunning" in daemon.cli("ls", "--color", "always").stdout


@pytest.mark.parametrize("kind, words, coloured", [
    (NoColour, (), False), (Dumb, (), False), (Narrow, ("--color", "never"), False),
    (NoColour, ("--color", "always"), True)])
def test_colour_is_as_asked_for(daemon, long, kind, words, coloured):
    assert bool(COLOUR.search(show(kind, daemon, *words))) == coloured


def test_a_colour_that_is_none_is_refused(daemon):
    done = daemon.cli("--color", "blue", "ls")
    assert done.returncode == 2 and "auto, always or never" in done.stderr
