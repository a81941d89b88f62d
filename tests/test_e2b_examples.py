"""examples/e2b/, run as their README says: with the variables of `warren env e2b` and nothing else."""
import json
import os
import shutil
import subprocess

import pytest

import e2b_kit as kit
from harness import ROOT


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The examples beside the newest packages."""
    top = tmp_path_factory.mktemp("examples") / "e2b"
    shutil.copytree(ROOT / "examples/e2b", top, ignore=shutil.ignore_patterns("node_modules"))
    for file in ("package.json", "package-lock.json"):
        shutil.copy(kit.HERE / "sets/latest" / file, top)
    kit.npm(top, "ci")
    return top


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    return kit.find_node(tmp_path_factory.mktemp("node") / "node")


@pytest.fixture(scope="module")
def base(daemon):
    """The template as `./dev up` makes it."""
    daemon.api.ok("POST", "/v1/templates", json.loads((ROOT / "images/base.json").read_text()))
    yield
    daemon.api.ok("DELETE", "/v1/templates/base")


@pytest.fixture
def example(place, node, daemon, base):
    def run(*words):
        variables = json.loads(daemon.cli("--json", "env", "e2b").stdout)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("E2B_", "MODEL"))}
        before = {s["id"] for s in daemon.api.list()["sandboxes"]}
        done = subprocess.run([node, *words], cwd=place, env={**env, **variables}, capture_output=True, text=True,
                              timeout=600)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        assert {s["id"] for s in daemon.api.list()["sandboxes"]} <= before, "left behind"
        return done.stdout
    return run


def test_an_agent_reaches_its_goal(example):
    said = example("agent.mjs")
    assert "FAILED (failures=1)" in said and said.endswith("the tests pass\n")


def test_a_browser_on_a_screen(example, daemon, place):
    kit.bring_image(daemon, "desktop")
    said = example("desktop.mjs", "screen.png")
    assert "the page said thanks" in said and "/vnc.html?" in said
    picture = (place / "screen.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert [int.from_bytes(picture[i:i + 4], "big") for i in (16, 20)] == [1280, 800]


def test_a_web_server_has_an_address(example, daemon, tmp_path, monkeypatch):
    # In place of wildcard DNS and a certificate that all know.
    (tmp_path / ".curlrc").write_text(f'connect-to = "::127.0.0.1:"\ncacert = "{daemon.cert}"\n')
    monkeypatch.setenv("CURL_HOME", str(tmp_path))
    said = example("server.mjs").splitlines()
    assert said[0].startswith("https://8000-")
    assert "<h1>Hello from a sandbox</h1>" in said[1]


def test_a_chart_comes_as_a_picture_and_as_data(example, daemon, place):
    kit.bring_image(daemon, "interpreter")
    said = example("chart.mjs", "chart.png").splitlines()
    assert said[0] == 'bar chart "Rain" in chart.png'
    assert said[1:] == ["Jan 54", "Feb 41", "Mar 48", "Apr 39", "May 52", "Jun 61", "mean 49.166666666666664"]
    assert (place / "chart.png").read_bytes().startswith(b"\x89PNG")
