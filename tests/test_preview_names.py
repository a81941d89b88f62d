"""What docs/api/previews.md offers programs that cannot resolve names under `localhost`, done by Python and Node as it stands there."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

from harness import DEADLINE
from preview_kit import host_of, site  # noqa: F401 - a fixture
from test_forward import forward

API = (pathlib.Path(__file__).parents[1] / "docs" / "api" / "previews.md").read_text()
PORT = 3000


def offered(pattern):
    """Code that the documentation has, with the name that the test's daemon knows."""
    table = API.split("## Names under localhost")[1].split("\n## ")[0]
    return re.search(pattern, table).group(0)


@pytest.fixture
def here(daemon, site):  # noqa: F811 - the fixture
    def made(code):
        return code.replace("3000-<id>.localhost", host_of(site, PORT)).replace("7070", str(daemon.port))
    return made


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def python(call):
    return run(sys.executable, "-c", f"import urllib.request\nprint(urllib.request.urlopen({call}).read().decode())")


def node(call):
    assert call[-1] == ")"
    return run("node", "-e", f"const http = require('node:http');\n{call[:-1]}, "
                             "answer => answer.pipe(process.stdout));")


def host_seen(answer):
    return dict(map(tuple, answer["headers"]))["host"]


def test_python_with_a_host_header(here, site):  # noqa: F811
    call = here(offered(r'urllib\.request\.Request\(.*?\}\)'))
    assert host_seen(python(call)) == host_of(site, PORT)


def test_node_with_a_host_header(here, site):  # noqa: F811
    call = here(offered(r'http\.get\(\{host: .*?\}\}\)'))
    assert host_seen(node(call)) == host_of(site, PORT)


def test_node_with_a_lookup_of_its_own(here, site):  # noqa: F811
    call = here(offered(r'http\.get\("http://.*?4\)\}\)'))
    assert host_seen(node(call)).split(":")[0] == host_of(site, PORT)


def test_fetch_and_python_through_a_forwarded_port(daemon, site):  # noqa: F811
    with forward(daemon, site, f"{PORT}") as (ports, _):
        url = f"http://127.0.0.1:{ports[0]}/a"
        assert python(repr(url))["path"] == "/a"
        assert run("node", "-e", f"fetch('{url}').then(r => r.text()).then(t => console.log(t))")["path"] == "/a"
