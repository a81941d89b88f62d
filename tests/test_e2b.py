"""E2B's own client, unmodified, against a real daemon and real sandboxes: tests/e2b/*.test.mjs under node."""
import os
import re
import shutil
import subprocess

import pytest

from harness import ROOT

HERE = ROOT / "tests/e2b"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The packages of the lock file, in a copy; nothing is written into the tree."""
    top = tmp_path_factory.mktemp("e2b") / "package"
    shutil.copytree(HERE, top, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=top, capture_output=True,
                          text=True, timeout=170)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return top


@pytest.fixture(scope="module")
def node(package):
    """A node that the client takes: it wants 20 or later, and Debian 12 has 18."""
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    if int(version.strip("v\n").split(".")[0]) >= 20:
        return "node"
    younger = "node-linux-" + {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    done = subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund", f"{younger}@22"],
                          cwd=package, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return str(package / "node_modules" / younger / "bin/node")


@pytest.mark.parametrize("name", sorted(p.name for p in HERE.glob("*.test.mjs")))
def test_with_the_official_client(package, node, daemon, name):
    env = {**os.environ, "E2B_API_KEY": daemon.key, "E2B_API_URL": f"{daemon.url}/e2b",
           "E2B_SANDBOX_URL": f"{daemon.url}/e2b"}
    done = subprocess.run([node, "--test", "--test-reporter=tap", name], cwd=package, env=env,
                          capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.M).group(1)) > 5, done.stdout[-2000:]
