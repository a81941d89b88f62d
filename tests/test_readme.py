"""The README's tour, pasted line by line into a shell on a terminal."""
import os
import re
import shutil

import pytest

import harness
from harness import BUILD, DEADLINE, ROOT
from registries import Registry
from test_cli import Terminal

pytestmark = [pytest.mark.skipif(not shutil.which("docker-registry"), reason="docker-registry is not installed"),
              pytest.mark.timeout(DEADLINE * 20)]
PROMPT = rb"TOUR\[(\d+)\]> "


def pasted_lines():
    """Each line of the tour's blocks; one that ends with a backslash has the next with it."""
    tour = (ROOT / "README.md").read_text().split("## A short tour")[1].split("\n## ")[0]
    block = "\n".join(re.findall(r"^    (.*)$", tour, re.M))
    return re.sub(r"\\\n", "", block).splitlines()


class Shell(Terminal):
    """bash on a terminal, in a directory of its own, with `warren` on its PATH."""

    def __init__(self, daemon, where):
        (where / "bin").mkdir()
        (where / "bin/warren").symlink_to(BUILD / "warren")
        (where / "work").mkdir()
        self.env = {**daemon.environment(), "PATH": f"{where}/bin:{os.environ['PATH']}", "TERM": "xterm",
                    "WARREN_RUN": str(daemon.run), "PS1": "TOUR[$?]> "}
        self.env.pop("WARREN_API_KEY")
        self.where = where / "work"
        super().__init__(daemon, rows=50, cols=200)

    def exec(self, daemon, args):
        os.chdir(self.where)
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting"], self.env)


@pytest.fixture
def registry(tiny_tar):
    r = Registry()
    r.put_image("alpine", [tiny_tar.read_bytes()], tag="3")
    yield r
    r.close()


def test_the_tour_works_as_it_is_pasted(tmp_path, registry):
    with harness.running() as daemon:
        here = {"docker.io/library/alpine:3": f"{registry.host}/alpine:3", "127.0.0.1:7070": f"127.0.0.1:{daemon.port}",
                "warren env e2b": f"warren env e2b --at {daemon.url}", "18000": str(harness.free_port())}
        shell = Shell(daemon, tmp_path)
        shell.expect(PROMPT)
        lines, shown = pasted_lines(), {}
        assert len(lines) > 20
        for line in lines:
            for outside, local in here.items():
                line = line.replace(outside, local)
            shell.type(line.encode() + b"\n")
            if "run -it" in line:
                shell.expect(rb"# $")
                shell.type(b"exit\n")
            before = shell.expect(rb"(?s)(.*)" + PROMPT, DEADLINE * 4)
            shown[line] = before[1].decode(errors="replace")
            assert before[2] == b"0", (line, shown[line])
        shell.type(b"exit\n")
        shell.wait()
        everything = "\n".join(shown.values())
        for words in ("42", "HELLO", "kept", "project/hello.py", "# TODO: say hello\r\n", "Linux"):
            assert words in everything, words
        assert daemon.api.list()["sandboxes"] == []
