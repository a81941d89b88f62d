"""What hostile clients send to previews, byte by byte: refused, bounded, and never passed on to be read otherwise."""
import contextlib
import http.client
import json
import os
import pathlib
import socket
import threading
import time

import pytest

import harness
from harness import until
from preview_kit import get, host_of, raw, serve
from test_preview import rss_kib, websocket

# Answers each head at once and writes down every byte that it gets.
RECORDER = """
import socket, threading
log = open("/tmp/seen", "ab", buffering=0)
def talk(s):
    got = b""
    while piece := s.recv(65536):
        log.write(piece)
        got += piece
        while b"\\r\\n\\r\\n" in got:
            got = got.split(b"\\r\\n\\r\\n", 1)[1]
            try:
                s.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            except OSError:
                return
server = socket.create_server(("127.0.0.1", 4000), backlog=128)
while True:
    threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def site(daemon):
    """A server on port 3000, one that writes down what it gets on 4000, one with bad manners on 5000."""
    box = daemon.api.create(memory_mb=1024)["id"]
    serve(daemon.api, box, 3000)
    for name, text, port in (("recorder", RECORDER, 4000), ("odd", ODD, 5000)):
        daemon.api.ok("PUT", f"/v1/sandboxes/{box}/files?path=/tmp/{name}.py", text)
        daemon.api.start(box, ["python3", f"/tmp/{name}.py"])
        until(lambda: get(daemon, host_of(box, port)).status == 200, f"the {name} to listen")
    yield box
    daemon.api.call("DELETE", f"/v1/sandboxes/{box}")


def seen(daemon, box):
    return daemon.api.call("GET", f"/v1/sandboxes/{box}/files?path=/tmp/seen").body


# A server with bad manners. It is never slower than who reads it.
ODD = """
import socket, threading
def talk(s):
    try:
        while head := s.recv(65536):
            path = head.split()[1]
            if path == b"/flood":
                while True:
                    s.sendall(b"HTTP/1.1 100 Continue\\r\\n\\r\\n" * 40000)
            if path == b"/once":
                open("/tmp/done", "ab").write(b"x")
                return s.close()
            names = b"Connection: keep-alive" + b",a" * 5000 + b"\\r\\n" if path == b"/named" else b""
            s.sendall(b"HTTP/1.1 200 OK\\r\\n" + names + b"Content-Length: 2\\r\\n\\r\\nok")
    except OSError:
        pass
server = socket.create_server(("127.0.0.1", 5000), backlog=128)
while True:
    threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()
"""


LIGHT = "san" not in harness.BUILD.name  # what a sanitizer's build weighs does not matter

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
POST = "POST / HTTP/1.1\r\nHost: {host}\r\n"
CHUNKED = POST + "Transfer-Encoding: chunked\r\n"

HEADS = [
    # a length and a coding, in both orders, and lengths that are none
    POST + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    POST + "Content-Length: 4\r\nTransfer-Encoding: identity\r\n\r\nabcd",
    POST + "Content-Length: +5\r\n\r\nhello", POST + "Content-Length: -1\r\n\r\n", POST + "Content-Length: 0x5\r\n\r\nhello",
    POST + "Content-Length: 5, 5\r\n\r\nhello", POST + "Content-Length: 5 5\r\n\r\nhello", POST + "Content-Length: \r\n\r\n",
    POST + "Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello", POST + "Content-Length: 99999999999999999999\r\n\r\n",
    POST + "Content-Length : 5\r\n\r\nhello", POST + "Content-Length: 5;\r\n\r\nhello", POST + "Content_Length: 5\r\nContent-Length\r\n\r\n",
    # codings that only some readers understand
    POST + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", POST + "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n",
    POST + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", POST + " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", POST + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    POST + "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", POST + "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + "Transfer-Encoding: chun\r\n ked\r\n\r\n0\r\n\r\n", POST + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    # lines
    "GET / HTTP/1.1\r\nHost: {host}\r\nX: a\x00b\r\n\r\n", "GET / HTTP/1.1\r\nHost: {host}\r\n: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {host}\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nHost: {host}\r\nX Y: a\r\n\r\n",
    "GET / HTTP/1.1\r\n Host: {host}\r\nHost: {host}\r\n\r\n", "GET / HTTP/1.1\r\nHost: {host}\r\n\tX: a\r\n\r\n",
    "GET  / HTTP/1.1\r\nHost: {host}\r\n\r\n", "GET / HTTP/1.1 \r\nHost: {host}\r\n\r\n", "GET / HTTP/1.2\r\nHost: {host}\r\n\r\n",
    "GET / HTTP/01.1\r\nHost: {host}\r\n\r\n", "GET /\x7f HTTP/1.1\r\nHost: {host}\r\n\r\n", "GET / http/1.1\r\nHost: {host}\r\n\r\n",
    "GET /a b HTTP/1.1\r\nHost: {host}\r\n\r\n", "G@T / HTTP/1.1\r\nHost: {host}\r\n\r\n", "GET x HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {host}, {host}\r\n\r\n", "GET / HTTP/1.1\r\nHost: {host}\r\nHost: other\r\n\r\n",
    "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n", "GET //{host}@evil/ HTTP/2.0\r\nHost: {host}\r\n\r\n",
    # behind the name a port, and nothing else
    *(f"GET / HTTP/1.1\r\nHost: {{host}}{rest}\r\n\r\n" for rest in (":9999junk", ":", ":0", ":080", ":65536", ":80:80", ":80@evil", ":80/x", ": 80", ":80.evil")),
    "CONNECT {host}:80 HTTP/1.1\r\nHost: {host}\r\n\r\n",
    # each field of a head would be compared with all of these
    "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close" + ",a" * 15000 + "\r\n" + "B: c\r\n" * 120 + "\r\n",
]
BODIES = [
    CHUNKED + "\r\n" + chunks for chunks in [
        "5;a=b\r\nhello\r\n0\r\n\r\n", "5;\r\nhello\r\n0\r\n\r\n", "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "5\r\nhello\r\n0\r\nContent-Length: 0\r\n\r\n", "5\r\nhello\r\n0;x\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\n", "ffffffffffffffff1\r\nhello", "00000000000000005\r\nhello",
        "g\r\nhello", "5\r\nhello\r\n0\r\n\rX"]
]


def test_what_could_be_read_in_two_ways_reaches_nobody(daemon, site):
    host = host_of(site, 4000)
    for bad in HEADS + BODIES:
        got = raw(daemon, bad.format(host=host).encode("latin-1") + SMUGGLED)
        # 421: a Host that is nobody's name.
        assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 421 ")), (bad, got[:300])
        assert got.count(b"\r\n\r\n") == 1, (bad, got[:600])
    until(lambda: get(daemon, host, "/marker").status == 200, "the recorder")
    written = seen(daemon, site)
    assert b"/marker" in written and b"smuggled" not in written
    for mark in (b"Content-Length: 0\r\n\r\n", b"5;a", b"X: y"):
        assert mark not in written, "a trailer or an extension passed"


def test_versions_and_prefaces_of_others_are_refused(daemon, site):
    for data in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\r\n\r\n\r\n", b"\x00" * 100,
                 b"GET /\r\n\r\n", b"HELO x\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := s.recv(65536):
                    got += piece
        assert b" 200 " not in got, (data, got)


def test_an_old_client_is_answered_and_let_go(daemon, site):
    got = raw(daemon, f"GET /x HTTP/1.0\r\nHost: {host_of(site, 3000)}\r\nConnection: keep-alive\r\n\r\n".encode() + SMUGGLED)
    assert got.startswith(b"HTTP/1.1 200") and got.count(b"\r\n\r\n") == 1


def test_floods_of_header_are_refused_and_cost_nothing(daemon, site):
    start = f"GET / HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\n".encode()
    before = rss_kib(daemon)
    for flood in (b"A: b\r\n" * 129, b"A: " + b"x" * 33_000 + b"\r\n", (b"A" * 300 + b": b\r\n") * 110,
                  b"Cookie: " + b"a=b; " * 7000 + b"\r\n", b"X-Forwarded-For: " + b"1.1.1.1, " * 4000 + b"1.1.1.1\r\n"):
        got = raw(daemon, start + flood + b"\r\n")
        assert got.startswith(b"HTTP/1.1 431 "), got[:100]
    # As much as is allowed passes.
    most = b"".join(b"H%d: %s\r\n" % (i, b"v" * 200) for i in range(90))
    assert raw(daemon, start + most + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    # Floods that never end, many at once: each is cut at its limit.
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE))
            with contextlib.suppress(OSError):
                s.sendall(start + b"A: b\r\n" * 20_000)
        assert get(daemon, host_of(site, 3000)).status == 200
        assert rss_kib(daemon) - before < 30_000 or not LIGHT


def test_a_server_that_never_gets_to_its_answer_holds_nobody_up(daemon, site):
    """Heads of 100 without end: a reader that takes them all must not be what the broker is busy with."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        s.sendall(f"GET /flood HTTP/1.1\r\nHost: {host_of(site, 5000)}\r\n\r\n".encode())
        got, n = b"", 0
        with contextlib.suppress(ConnectionResetError):
            while (piece := s.recv(1 << 20)) and n < 50_000_000:
                got, n = (got + piece)[-2000:], n + len(piece)
    assert n < 200_000 and b"HTTP/1.1 502 Bad Gateway" in got and b"bad_answer" in got, (n, got[-500:])
    assert get(daemon, host_of(site, 3000)).status == 200
    assert get(daemon, host_of(site, 5000), "/named").code == "bad_answer"


def test_what_may_have_been_done_is_not_done_again(daemon, site):
    """On a connection that was used before, the end of it says nothing of whether a request was read."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=harness.DEADLINE)) as c:
        for method, path, status in (("GET", "/", 200), ("POST", "/once", 502)):
            c.request(method, path, headers={"Host": host_of(site, 5000)})
            r = c.getresponse()
            r.read()
            assert r.status == status
    assert daemon.api.out(site, "cat /tmp/done") == "x"


def test_what_is_said_of_a_bad_head_is_about_that_one(daemon, site):
    got = raw(daemon, f"HEAD /x HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\nAccept: text/html\r\n\r\nGET\r\n\r\n".encode())
    last = got[got.index(b"HTTP/1.1 400 "):]
    head, body = last.split(b"\r\n\r\n", 1)
    assert b"Content-Length: %d\r\n" % len(body) in head and json.loads(body)["error"]["code"] == "invalid_request"
    assert site.encode() not in last


def test_a_thousand_requests_at_once_are_answered_in_order(daemon, site):
    one = f"GET /%d HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\n"
    data = "".join(one % i + "\r\n" for i in range(999)).encode() + (one % 999 + "Connection: close\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE * 2) as s:
        threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
        got = b"".join(iter(lambda: s.recv(1 << 16), b""))
    assert [p.split(b'"')[0] for p in got.split(b'"path": "/')[1:]] == [b"%d" % i for i in range(1000)]


def test_slow_ones_are_cut_and_hold_nobody_up(daemon, site):
    """Heads that trickle, on a new connection and on one that was used, and what TLS begins with; bodies and readers that are slow."""
    host = host_of(site, 3000)
    head = f"GET /x HTTP/1.1\r\nHost: {host}\r\n".encode()
    before = rss_kib(daemon)
    with contextlib.ExitStack() as stack:
        def opened(data, port=daemon.port):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE))
            s.sendall(data)
            return s
        fresh = [opened(head) for _ in range(20)]
        hellos = [opened(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", daemon.tls_port) for _ in range(20)]
        used = [opened(head + b"\r\n") for _ in range(20)]
        for s in used:
            assert s.recv(65536).startswith(b"HTTP/1.1 200")
            s.sendall(head)
        bodies = [opened(f"POST /up HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n\r\nabc".encode()) for _ in range(50)]
        readers = [opened(f"GET /big?n=30000000 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()) for _ in range(20)]
        assert get(daemon, host).status == 200
        assert rss_kib(daemon) - before < 40_000 or not LIGHT, "what slow ones hold is bounded"
        trickling, end = set(fresh + used + hellos), time.monotonic() + harness.DEADLINE * 2
        while trickling and time.monotonic() < end:  # a byte now and then buys no time
            for s in list(trickling):
                try:
                    s.sendall(b"A")
                    s.setblocking(False)
                    if s.recv(1) == b"":
                        trickling.discard(s)
                except BlockingIOError:
                    pass
                except OSError:
                    trickling.discard(s)
                finally:
                    with contextlib.suppress(OSError):
                        s.settimeout(harness.DEADLINE)
            time.sleep(0.2)
        assert not trickling, f"{len(trickling)} heads still trickle in"
        assert get(daemon, host).status == 200
        # A slow body that comes at last is taken.
        for s in bodies[:3]:
            s.sendall(os.urandom(1000000 - 3))
            got = b""
            while b'"n": 1000000' not in got:
                piece = s.recv(65536)
                assert piece, got
                got += piece
        assert readers[0].recv(100).startswith(b"HTTP/1.1 200")


def test_a_websocket_of_another_site_passes_but_no_cookie_of_ours(daemon, site):
    """Whom it lets in by Origin is the server's to judge; what is Warren's it must never see."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        f = websocket(s, host_of(site, 3000), "/ws", "Origin: https://evil.test\r\nCookie: warren_preview=x; sid=1\r\n")
        s.sendall(b"\x81\xfe" + b"frames are not ours to read")
        assert f.read(5) == b"\x81\xfefra"
    raw(daemon, f"GET /ws-marker HTTP/1.1\r\nHost: {host_of(site, 4000)}\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n"
                "Origin: https://evil.test\r\nCookie: warren_preview=secret; sid=1\r\nX-API-Key: test_"
                f"{'0123456789abcdef' * 2}01234567\r\n\r\n".encode())
    written = seen(daemon, site).split(b"/ws-marker", 1)[1]
    assert b"Origin: https://evil.test" in written and b"Cookie: sid=1" in written
    assert b"secret" not in written and b"warren_" not in written and b"0123456789abcdef" not in written


def test_idle_connections_cost_little(daemon, site):
    host = host_of(site, 3000)
    before, n = rss_kib(daemon), 500
    with contextlib.ExitStack() as stack:
        for _ in range(n):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE))
            s.sendall(f"HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert s.recv(4096).startswith(b"HTTP/1.1 200")
        assert (rss_kib(daemon) - before) / n < 20 or not LIGHT
    pids = daemon.pids("warren-broker")
    until(lambda: sum(len(list(pathlib.Path(f"/proc/{p}/fd").iterdir())) for p in pids) < n, "the connections to be closed")
