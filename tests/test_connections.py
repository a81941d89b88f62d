"""More connections than there is room for: whoever has a key, and root, still get in, and the daemon still ends."""
import contextlib
import resource
import socket
import time

import pytest

import harness

HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(autouse=True, scope="module")
def room():
    """Descriptors for many sockets."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def many(port, n, said=b"", addresses=("127.0.0.1",)):
    """So many connections, each of which said this much; closed at the end of the block."""
    opened = []
    try:
        for i in range(n):
            s = socket.socket()
            s.settimeout(harness.DEADLINE)
            s.bind((addresses[i % len(addresses)], 0))
            s.connect(("127.0.0.1", port))
            opened.append(s)
            with contextlib.suppress(OSError):  # it may have been turned away
                s.sendall(said)
        yield opened
    finally:
        for s in opened:
            s.close()


@pytest.fixture
def own():
    """A daemon that need not live on."""
    d = harness.Daemon()
    yield d
    d.close()


def test_a_crowd_that_keeps_its_connections_neither_stops_the_daemon_nor_keeps_it_from_stopping(own):
    with many(own.port, 4400, HEALTH):
        assert own.admin.ok("GET", "/v1/health")["status"] == "ok"
        assert own.api.call("GET", "/v1/sandboxes").status in (200, 503)
        began = time.monotonic()
        assert own.stop() == 0
        assert time.monotonic() - began < 20
    own.start()
    assert own.api.call("GET", "/v1/sandboxes").status == 200
