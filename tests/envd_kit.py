"""One sandbox's envd as raw requests, and the envelopes of its streams."""
import base64
import contextlib
import json
import struct

import pytest

from harness import DEADLINE


class Envd:
    """One sandbox's envd: the headers that name it, and its token."""

    def __init__(self, daemon, made, token=None):
        self.daemon, self.id = daemon, made["sandboxID"]
        self.token = token or made.get("envdAccessToken")

    def headers(self, extra=None):
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983"}
        if self.token:
            headers["X-Access-Token"] = self.token
        headers.update(extra or {})
        return {k: v for k, v in headers.items() if v is not None}

    def call(self, method, path, body=None, headers=None, timeout=DEADLINE * 2):
        return self.daemon.api.with_key(None).call(method, f"/e2b{path}", body, self.headers(headers), timeout)

    def rpc(self, method, message=None, headers=None):
        return self.call("POST", f"/{method}", json.dumps(message or {}),
                         {"Content-Type": "application/json", **(headers or {})})

    def stream(self, method, message, headers=None, timeout=DEADLINE * 2):
        """Every envelope of the answer to one."""
        got = self.raw_stream(method, envelope(message), headers, timeout)
        assert got.status == 200, got
        return [json.loads(m) for _, m in envelopes(got.body)]

    def open(self, method, body, headers=None, timeout=DEADLINE * 2):
        """A stream as it comes: the connection and an iterator of (flags, message)."""
        connection, response = self.daemon.api.with_key(None).open(
            "POST", f"/e2b/{method}", body, self.headers({"Content-Type": "application/connect+json", **(headers or {})}),
            timeout)
        return connection, pieces(response)

    def raw_stream(self, method, body, headers=None, timeout=DEADLINE * 2):
        return self.call("POST", f"/{method}", body, {"Content-Type": "application/connect+json", **(headers or {})},
                         timeout)

    def start(self, shell, **more):
        return {"process": {"cmd": "/bin/sh", "args": ["-c", shell]}, **more}


def envelope(message, flags=0):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def pieces(response):
    while True:
        head = response.read(5)
        if not head:
            return
        flags, n = struct.unpack(">BI", head)
        yield flags, json.loads(response.read(n))


def envelopes(body):
    found = []
    while body:
        flags, n = struct.unpack(">BI", body[:5])
        assert len(body) >= 5 + n, "an envelope was cut"
        found.append((flags, body[5:5 + n]))
        body = body[5 + n:]
    return found


@pytest.fixture(scope="module")
def e2b(daemon):
    """The control plane: call(method, path, body)."""
    def call(method, path, body=None, key=daemon.key, headers=None):
        return daemon.api.with_key(None).call(method, f"/e2b{path}", body, {"X-API-Key": key, **(headers or {})})
    return call


@pytest.fixture(scope="module")
def made(e2b):
    reply = e2b("POST", "/v2/sandboxes", {"templateID": "base", "envVars": {"OWN": "x", "E2B_SANDBOX_ID": "lie"}})
    assert reply.status == 201, reply
    yield reply.json
    e2b("DELETE", f"/sandboxes/{reply.json['sandboxID']}")


@pytest.fixture(scope="module")
def envd(daemon, made):
    return Envd(daemon, made)


def put(envd, path, data, **headers):
    return envd.call("POST", f"/files?path={path}", data, {"Content-Type": "application/octet-stream", **headers})


def running(envd, shell, **more):
    """Start and leave: the pid."""
    connection, response = envd.daemon.api.with_key(None).open(
        "POST", "/e2b/process.Process/Start", envelope(envd.start(shell, **more)),
        envd.headers({"Content-Type": "application/connect+json"}))
    with contextlib.closing(connection):
        flags, n = struct.unpack(">BI", response.read(5))
        return json.loads(response.read(n))["event"]["start"]["pid"]


def b64(data):
    return base64.b64encode(data).decode()
