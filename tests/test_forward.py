"""`warren forward`: a port of a sandbox on a local one, in WebSockets."""
import base64
import contextlib
import hashlib
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import urllib.parse

import pytest

import harness
from harness import until

SERVER = pathlib.Path(__file__).with_name("forward_server.py").read_text()
PORT = 7777
MIB = 1 << 20


@pytest.fixture(scope="module")
def site(daemon):
    """A sandbox with the server."""
    sandbox = daemon.api.create()["id"]
    daemon.api.ok("PUT", f"/v1/sandboxes/{sandbox}/files?path=/tmp/server.py", SERVER)
    daemon.api.start(sandbox, ["python3", "/tmp/server.py", str(PORT)])
    daemon.api.out(sandbox, f"for i in $(seq 600); do python3 -c \"import socket; socket."
                            f"create_connection(('127.0.0.1', {PORT}))\" 2>/dev/null && exit 0; "
                            "sleep 0.05; done; exit 1")
    yield sandbox
    daemon.api.call("DELETE", f"/v1/sandboxes/{sandbox}")


@contextlib.contextmanager
def forward(daemon, *args, env=None):
    """The command at work; the local ports that it printed, and the process."""
    p = subprocess.Popen([str(harness.BUILD / "warren"), "forward", *map(str, args)], text=True,
                         env={**daemon.cli_environment(), **(env or {})}, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        ports = []
        for word in args[1:]:
            if re.fullmatch(r"\d+(:\d+)?", str(word)):
                line = p.stdout.readline()
                assert "->" in line, (line, p.poll(), p.stderr.read() if p.poll() else "")
                ports.append(int(re.search(r":(\d+) ->", line).group(1)))
        yield ports, p
    finally:
        if p.poll() is None:
            p.send_signal(signal.SIGINT)
        try:
            p.wait(harness.DEADLINE)
        finally:
            p.kill()
            p.stdout.close()
            p.stderr.close()


@pytest.fixture(scope="module")
def local(daemon, site):
    with forward(daemon, site, f"{PORT}:0", "-q") as (ports, _):
        yield ports[0]


def dial(port, word):
    s = socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE * 2)
    s.sendall(word.encode() + b"\n")
    return s


def read_all(s):
    got = bytearray()
    while piece := s.recv(1 << 20):
        got += piece
    return bytes(got)


def test_bytes_pass_both_ways_at_once(local):
    with dial(local, "echo") as s:
        data = os.urandom(3 * MIB + 17)
        t = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        t.start()
        assert read_all(s) == data
        t.join()


def test_64_mib_pass_whole_in_each_direction(daemon, site, local):
    data = bytes(range(256)) * 256 * 1024
    with dial(local, "sum") as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        n, digest = read_all(s).split()
    assert int(n) == len(data) and digest.decode() == hashlib.sha256(data).hexdigest()
    with dial(local, f"send {len(data)}") as s:
        assert hashlib.sha256(read_all(s)).digest() == hashlib.sha256(data).digest()


def test_either_side_may_end_first(daemon, site, local):
    with dial(local, "end_first") as s:
        assert s.recv(100) == b"bye\n"
        assert s.recv(100) == b""
        s.sendall(b"still here")
        s.shutdown(socket.SHUT_WR)
        until(lambda: daemon.api.out(site, "cat /tmp/end-first 2>/dev/null || true") == "still here")


def test_a_reset_stays_a_reset(daemon, site, local):
    with dial(local, "reset") as s, pytest.raises(ConnectionResetError):
        while s.recv(100):
            pass
    for how, want in (("reset", "reset"), ("end", "end")):
        daemon.api.out(site, "rm -f /tmp/how")
        s = dial(local, "how_it_ends")
        assert s.recv(2) == b"ok"
        if how == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        got = until(lambda: daemon.api.out(site, "cat /tmp/how 2>/dev/null || true"))
        assert got == want


def rss_kib(pids):
    return sum(int(line.split()[1]) for pid in pids
               for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
               if line.startswith("VmRSS"))


def test_a_slow_side_holds_the_other_back(daemon, site):
    with forward(daemon, site, f"{PORT}:0", "-q") as ((port,), p):
        pids = [p.pid, *daemon.pids("warren-broker")]
        with dial(port, "deaf") as s:
            assert s.recv(100) == b"deaf\n"
            before = rss_kib(pids)
            s.settimeout(2)
            sent = 0
            with contextlib.suppress(TimeoutError):
                while sent < 64 * MIB:  # nobody takes this much
                    sent += s.send(b"x" * MIB)
            assert sent < 64 * MIB
            if "san" not in harness.BUILD.name:  # what a sanitizer's build weighs does not matter
                assert rss_kib(pids) - before < 8192
            s.settimeout(harness.DEADLINE)
            # The other direction, and other connections, are not held up.
            with dial(port, "echo") as other:
                other.sendall(b"hello")
                assert other.recv(5) == b"hello"
            daemon.api.out(site, "touch /tmp/hear")
            s.shutdown(socket.SHUT_WR)
            assert int(read_all(s).split()[0]) == sent
        before = rss_kib(pids)
        with dial(port, f"send {64 * MIB}") as s:
            s.recv(1)
            if "san" not in harness.BUILD.name:  # what a sanitizer's build weighs does not matter
                assert rss_kib(pids) - before < 8192
            assert len(read_all(s)) == 64 * MIB - 1


def test_many_connections_at_once(local):
    socks = [dial(local, "echo") for _ in range(60)]
    for i, s in enumerate(socks):
        s.sendall(b"%d\n" % i)
    for i, s in enumerate(socks):
        assert s.recv(100) == b"%d\n" % i
        s.close()


def test_what_it_says_and_how_it_ends(daemon, site):
    with forward(daemon, site, f"{PORT}:0", "9:0") as ((port, closed), p):
        with dial(port, "echo") as s:
            s.sendall(b"x")
            assert s.recv(1) == b"x"
        assert "connection 1 to port 7777 is open" in p.stderr.readline()
        assert re.search(r"connection 1 to port 7777 is over: .* there, .* back",
                         p.stderr.readline())
        with socket.create_connection(("127.0.0.1", closed)) as s:
            with contextlib.suppress(ConnectionResetError):
                assert s.recv(1) == b""
        assert "nothing listens on port 9" in p.stderr.readline()
        held = dial(port, "echo")
        held.sendall(b"y")
        assert held.recv(1) == b"y"
        p.send_signal(signal.SIGINT)
        assert p.wait(harness.DEADLINE) == 0
        with contextlib.suppress(ConnectionResetError):
            assert held.recv(1) == b""
        held.close()


def test_what_cannot_be_is_said(daemon, site):
    assert "no sandbox" in daemon.cli("forward", "nobody", 80).stderr
    for word in ("x", "0", "80:", "80:x", "65536", "1:2:3", "-5"):
        assert daemon.cli("forward", site, "--", word).returncode != 0, word
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        r = daemon.cli("forward", site, f"80:{taken.getsockname()[1]}")
        assert r.returncode != 0 and "cannot listen" in r.stderr
    assert "not an address" in daemon.cli("forward", "-a", "nowhere", site, "80").stderr


def test_tls_and_the_admin_socket_carry_it_too(daemon, site):
    url = {"WARREN_URL": f"https://127.0.0.1:{daemon.tls_port}", "WARREN_CA": str(daemon.cert)}
    admin = {"WARREN_URL": "", "WARREN_SOCKET": str(daemon.run / "warren.sock"),
             "WARREN_API_KEY": ""}
    data = os.urandom(5 * MIB)
    for env in (url, admin):
        with forward(daemon, site, f"{PORT}:0", "-q", env=env) as ((port,), _):
            with dial(port, "echo") as s:
                t = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
                t.start()
                assert read_all(s) == data
                t.join()


def proxy(seen):
    """An HTTP proxy that asks for no name: everything is here."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(a, b):
        with contextlib.suppress(OSError):
            while piece := a.recv(65536):
                b.sendall(piece)
            b.shutdown(socket.SHUT_WR)

    def serve(c):
        head = b""
        while b"\r\n\r\n" not in head:
            head += c.recv(1)
        method, where = head.decode().split()[:2]
        seen.append(f"{method} {where}")
        at = urllib.parse.urlsplit(where if "://" in where else f"//{where}")
        up = socket.create_connection(("127.0.0.1", at.port))
        if method == "CONNECT":
            c.sendall(b"HTTP/1.1 200 ok\r\n\r\n")
        else:
            up.sendall(head.replace(where.encode(), at.path.encode(), 1))
        threading.Thread(target=pump, args=(up, c), daemon=True).start()
        pump(c, up)

    def run():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=run, daemon=True).start()
    return listener


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_carries_it(daemon, site, scheme):
    seen = []
    port = daemon.tls_port if scheme == "https" else daemon.port
    with proxy(seen) as listener:
        env = {"WARREN_URL": f"{scheme}://warren.test:{port}", "WARREN_CA": str(daemon.cert),
               f"{scheme}_proxy": f"http://127.0.0.1:{listener.getsockname()[1]}", "no_proxy": "",
               "NO_PROXY": ""}
        with forward(daemon, site, f"{PORT}:0", "-q", env=env) as ((local,), _):
            with dial(local, "echo") as s:
                s.sendall(b"hello")
                assert s.recv(5) == b"hello"
    assert f"CONNECT warren.test:{port}" in seen


def test_a_daemon_that_starts_again_is_found_again(fresh):
    box = fresh.api.create(image="tiny")["id"]
    fresh.api.start(box, "while true; do nc -l -p 70 -e cat; done")
    with forward(fresh, box, "70:0") as ((port,), p):
        def echoes():
            with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE) as s:
                with contextlib.suppress(ConnectionError):
                    s.sendall(b"hello\n")
                    return s.recv(6) == b"hello\n"
        until(echoes)
        fresh.restart()
        until(echoes)
        assert p.poll() is None
    fresh.api.delete(box)


# ---- the protocol, by hand ----

def upgrade(daemon, sandbox, port=PORT, version="13", key=None, more="", secret=harness.KEY):
    s = socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE)
    key = key or base64.b64encode(os.urandom(16)).decode()
    s.sendall(f"GET /v1/sandboxes/{sandbox}/ports/{port}/connect HTTP/1.1\r\nHost: x\r\n"
              f"Authorization: Bearer {secret}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              f"Sec-WebSocket-Version: {version}\r\nSec-WebSocket-Key: {key}\r\n{more}\r\n".encode())
    f = s.makefile("rb")
    status = int(f.readline().split()[1])
    fields = {}
    while line := f.readline().strip():
        name, value = line.decode().split(": ", 1)
        fields[name.lower()] = value
    if status == 101:
        want = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert fields["sec-websocket-accept"] == base64.b64encode(want).decode()
    return s, f, status, fields


def frame(opcode, data=b"", fin=True, mask=True, rsv=0):
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    n = len(data)
    bit = 0x80 if mask else 0
    head += (bytes([bit | n]) if n < 126 else bytes([bit | 126]) + n.to_bytes(2, "big")
             if n < 65536 else bytes([bit | 127]) + n.to_bytes(8, "big"))
    if not mask:
        return head + data
    key = os.urandom(4)
    return head + key + bytes(b ^ key[i % 4] for i, b in enumerate(data))


def read_frame(f):
    head = f.read(2)
    if len(head) < 2:
        return None, b""
    assert not head[1] & 0x80, "a server does not mask"
    n = head[1] & 127
    if n > 125:
        n = int.from_bytes(f.read(2 if n == 126 else 8), "big")
    return head[0] & 15, f.read(n)


def test_frames_of_any_other_client(daemon, site):
    s, f, status, _ = upgrade(daemon, site)
    assert status == 101
    with s:
        s.sendall(frame(2, b"ec", fin=False) + frame(9, b"are you there") + frame(0, b"ho\nhel",
                  fin=False) + frame(0, b"lo"))
        assert read_frame(f) == (10, b"are you there")
        assert read_frame(f) == (2, b"hello")
        for byte in frame(2, b"slow"):
            s.sendall(bytes([byte]))
        got = b""
        while len(got) < 4:
            got += read_frame(f)[1]
        assert got == b"slow"
        s.sendall(frame(8, b"\x03\xe8"))
        assert read_frame(f) == (8, b"\x03\xe8")
        assert f.read() == b""


HOSTILE = {
    "unmasked": frame(2, b"hi", mask=False),
    "text": frame(1, b"hi"),
    "an extension": frame(2, b"hi", rsv=4),
    "no such frame": frame(3, b"hi"),
    "no such control": frame(11),
    "goes on from nothing": frame(0, b"hi"),
    "begins within": frame(2, b"a", fin=False) + frame(2, b"b"),
    "a ping in parts": frame(9, b"hi", fin=False),
    "a long ping": frame(9, b"x" * 126),
    "a length of 2^63": b"\x82\xff\x80" + bytes(7) + b"mask" + b"x" * 100,
    "a length that lies about its size": b"\x82\xfe\x00\x05maskhello",
    "half a code": frame(8, b"x"),
    "a wrong code": frame(8, b"\0\0"),
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_frames_end_the_connection(daemon, site, what):
    broker = daemon.pids("warren-broker")
    s, f, status, _ = upgrade(daemon, site)
    assert status == 101
    with s:
        s.sendall(HOSTILE[what])
        kind, data = read_frame(f)
        while kind == 2:
            kind, data = read_frame(f)
        assert (kind, data) == (8, b"\x03\xea"), (kind, data)
        assert f.read() == b""
    assert daemon.pids("warren-broker") == broker


def test_floods_cost_nothing(daemon, site):
    """A flood of pings whose answers are not read, and a frame that says it is endless."""
    pids = daemon.pids("warren-broker")
    before = rss_kib(pids)
    s, _, status, _ = upgrade(daemon, site)
    assert status == 101
    with s:
        flood = frame(9, b"x" * 125) * 8192
        s.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for _ in range(16):
                s.sendall(flood)
        assert rss_kib(pids) - before < 4096
    s, f, status, _ = upgrade(daemon, site)
    with s:
        s.sendall(b"\x82\xff\x7f" + b"\xff" * 7 + bytes(4) + b"echo\n" + b"x" * 100_000)
        got = 0
        while got < 100_000:
            got += len(read_frame(f)[1])
        assert rss_kib(pids) - before < 4096


def test_who_may_and_how(daemon, site):
    def refusal(*args, **kwargs):
        s, f, status, fields = upgrade(*args, **kwargs)
        with s:
            body = f.read(int(fields.get("content-length", 0)))
        return status, re.search(rb'"code":\s*"(\w+)"', body).group(1).decode()

    assert refusal(daemon, site, secret="test_" + "f" * 40) == (401, "unauthorized")
    assert refusal(daemon, "a" * 20) == (404, "sandbox_not_found")
    assert refusal(daemon, site, port=9) == (502, "port_closed")
    assert refusal(daemon, site, port=0)[0] == 400
    assert refusal(daemon, site, port=65536)[0] == 400
    assert refusal(daemon, site, version="8") == (426, "upgrade_required")
    assert refusal(daemon, site, key="short") == (400, "invalid_request")
    r = daemon.api.call("GET", f"/v1/sandboxes/{site}/ports/{PORT}/connect")
    assert r.status == 426 and r.headers["Upgrade"] == "websocket"
    # Another team's sandbox is as if it were not there.
    daemon.api.ok("POST", "/v1/teams", {"name": "fwd"})
    key = daemon.api.ok("POST", "/v1/keys", {"name": "fwd", "team": "fwd", "role": "member"})["key"]
    assert refusal(daemon, site, secret=key) == (404, "sandbox_not_found")
    daemon.api.call("DELETE", "/v1/teams/fwd")


def test_who_speaks_too_early_is_cut(daemon, site):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        s.sendall(f"GET /v1/sandboxes/{site}/ports/{PORT}/connect HTTP/1.1\r\nHost: x\r\n"
                  f"Authorization: Bearer {harness.KEY}\r\nUpgrade: websocket\r\n"
                  "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode() +
                  frame(2, b"echo\nhello"))
        with contextlib.suppress(ConnectionResetError):
            assert b"hello" not in read_all(s)


def test_a_sandbox_that_ends_ends_its_connections(daemon, make):
    box = make(image="tiny")["id"]
    daemon.api.start(box, "nc -l -p 70 -e cat")
    until(lambda: "nc" in daemon.api.out(box, "ps") and True)
    with forward(daemon, box, "70:0", "-q") as ((port,), _):
        def connected():
            s = socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE)
            with contextlib.suppress(ConnectionError):
                s.sendall(b"hello\n")
                if s.recv(6) == b"hello\n":
                    return s
            s.close()
        s = until(connected)
        daemon.api.delete(box)
        with contextlib.suppress(ConnectionError):
            assert s.recv(1) == b""
        s.close()


def test_a_connection_wakes_a_sandbox_that_may_be_woken(daemon):
    daemon.api.ok("POST", "/v1/templates", {"name": "fwd-echo", "image": "tiny", "start_command":
                                            "sleep 1; while true; do nc -l -p 70 -e cat; done"})
    box = daemon.api.create(template="fwd-echo", wake="always")["id"]
    daemon.api.ok("POST", f"/v1/sandboxes/{box}/stop")
    with forward(daemon, box, "70:0", "-q") as ((port,), _):
        with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE) as s:
            s.sendall(b"hello\n")
            assert s.recv(6) == b"hello\n"
    daemon.api.delete(box)
    daemon.api.ok("DELETE", "/v1/templates/fwd-echo")
