"""The Python client as the tree has it, and one that speaks to the tests' daemon."""
import sys

import pytest

from harness import ROOT

SDK = ROOT / "sdk/python"
sys.path.insert(0, str(SDK))

import warren_sandbox as warren  # noqa: E402


@pytest.fixture(scope="module")
def client(daemon):
    with warren.Client(daemon.url, daemon.key) as client:
        yield client
