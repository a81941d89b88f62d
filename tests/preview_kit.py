"""What tests of previews share: requests to ports by their Host, the server that listens there, and a public sandbox with it."""
import contextlib
import http.client
import pathlib
import socket

import pytest

import harness

SERVER = pathlib.Path(__file__).with_name("preview_server.py").read_text()


def host_of(sandbox, port, domain="warren.test"):
    return f"{port}-{sandbox}.{domain}"


def serve(api, sandbox, port, address="127.0.0.1"):
    api.ok("PUT", f"/v1/sandboxes/{sandbox}/files?path=/tmp/server.py", SERVER)
    api.start(sandbox, ["python3", "/tmp/server.py", str(port), address])
    api.out(sandbox, f"for i in $(seq 600); do python3 -c \"import socket; socket.create_connection("
                     f"('{address}', {port}))\" 2>/dev/null && exit 0; sleep 0.05; done; exit 1")


@pytest.fixture(scope="module")
def site(daemon):
    """A sandbox with a server on port 3000."""
    sandbox = daemon.api.create()["id"]
    serve(daemon.api, sandbox, 3000)
    yield sandbox
    daemon.api.call("DELETE", f"/v1/sandboxes/{sandbox}")


def connect(daemon):
    return contextlib.closing(http.client.HTTPConnection("127.0.0.1", daemon.port,
                                                         timeout=harness.DEADLINE))


def get(daemon, host, path="/", method="GET", body=None, headers=None, timeout=harness.DEADLINE):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=timeout)) as c:
        c.request(method, path, body=body, headers={"Host": host, **(headers or {})})
        r = c.getresponse()
        return harness.Reply(r.status, r.headers, r.read())


def seen_by(reply):
    """The headers that the server inside got."""
    assert reply.status == 200, reply
    return dict(map(tuple, reply.json["headers"]))


def raw(daemon, data):
    """What comes back for these bytes, until the other side closes."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        s.sendall(data)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := s.recv(65536):
                got += piece
        return got
