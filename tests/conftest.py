"""Fixtures: `api` and `box` on a daemon that the whole run shares, `fresh` for one of your own."""
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

import harness


def pytest_configure(config):
    # A shell that starts something in the background has it ignore these, and so all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signo in signal.SIGQUIT, signal.SIGHUP:
        signal.signal(signo, signal.SIG_DFL)
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(harness.DEADLINE * 6))
    # The cheapest first, so that a broken build shows at once.
    items.sort(key=lambda i: 0 if "test_units" in i.nodeid else 1)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.skipped and os.environ.get("MUST_RUN") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped where MUST_RUN=1: {report.longrepr}"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    passed, skipped = len(stats.get("passed", [])), len(stats.get("skipped", []))
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    terminalreporter.write_line(
        f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))


@pytest.fixture(scope="session")
def tiny_tar():
    with tempfile.TemporaryDirectory(prefix="wt-tiny-") as d:
        yield harness.tiny_image(pathlib.Path(d) / "tiny.tar")


@pytest.fixture(scope="session")
def daemon(tiny_tar):
    """The shared instance: images `base` and `tiny`, and TLS for names under warren.test."""
    with harness.running(domain="warren.test", images={"tiny": tiny_tar, "base": harness.base_image()}) as d:
        yield d


@pytest.fixture(scope="session")
def api(daemon):
    return daemon.api


@pytest.fixture
def box(api):
    """A sandbox on the base image; its id."""
    sandbox = api.create()
    yield sandbox["id"]
    api.call("DELETE", f"/v1/sandboxes/{sandbox['id']}")


@pytest.fixture
def tiny(api):
    """A sandbox on the tiny image; its id."""
    sandbox = api.create(image="tiny")
    yield sandbox["id"]
    api.call("DELETE", f"/v1/sandboxes/{sandbox['id']}")


@pytest.fixture
def make(api):
    """Make sandboxes that are gone after the test."""
    made = []

    def make_one(**spec):
        sandbox = api.create(**spec)
        made.append(sandbox["id"])
        return sandbox
    yield make_one
    for who in made:
        api.call("DELETE", f"/v1/sandboxes/{who}")


@pytest.fixture
def fresh(tiny_tar):
    """A daemon of the test's own, with the image `tiny`; it may be killed and started again."""
    with harness.running(images={"tiny": tiny_tar}) as d:
        yield d


@pytest.fixture(scope="session")
def world():
    """Real servers in a network namespace of their own (net_kit)."""
    import net_kit
    w = net_kit.World()
    try:
        yield w
    finally:
        w.close()


@pytest.fixture(scope="session")
def net(world, tiny_tar):
    """An instance that may reach them: images `base` and `tiny`."""
    with harness.running("--resolvers", world.dns, "--egress-open", ",".join(world.opened), "--egress-ca",
                         str(world.dir / "ca.pem"), images={"base": harness.base_image(), "tiny": tiny_tar}) as d:
        yield d


@pytest.fixture
def build_dir():
    return harness.BUILD


@pytest.fixture
def run():
    def run_command(*args, **kwargs):
        return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=60,
                              **kwargs)
    return run_command
