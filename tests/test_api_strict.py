"""The API refuses requests that two readers could understand differently, as previews do, over TCP, TLS and the admin
socket, first or later on a connection, and closes."""
import contextlib
import json
import re
import socket
import ssl

import pytest

import harness

OK = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + harness.KEY.encode() + b"\r\n"
GET = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"
CHUNKS = b"2\r\n{}\r\n0\r\n\r\n"

HOSTILE = {
    "a length and a coding": POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "a coding and a length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + CHUNKS,
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "the same length twice": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a list of lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "a signed length": POST + b"Content-Length: +2\r\n\r\n{}",
    "a negative length": POST + b"Content-Length: -2\r\n\r\n{}",
    "a length in hex": POST + b"Content-Length: 0x2\r\n\r\n{}",
    "a length beyond numbers": POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "identity and chunks": POST + b"Transfer-Encoding: identity, chunked\r\n\r\n" + CHUNKS,
    "chunks and identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
    "chunks twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
    "a quoted coding": POST + b'Transfer-Encoding: "chunked"\r\n\r\n' + CHUNKS,
    "chunks in HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "a folded line": GET + b"A: b\r\n c\r\n\r\n",
    "a folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CHUNKS,
    "one bare line feed": GET + b"A: b\nC: d\r\n\r\n",
    "bare line feeds": GET.replace(b"\r\n", b"\n") + b"\n",
    "a bare line feed at the end": GET + b"\n",
    "a bare carriage return": GET + b"A: b\rC: d\r\n\r\n",
    "a NUL": GET + b"A: b\0c\r\n\r\n",
    "a blank before the colon": POST + b"Content-Length : 2\r\n\r\n{}",
    "no name": GET + b": b\r\n\r\n",
    "no colon": GET + b"nonsense\r\n\r\n",
    "an odd name": GET + b"A(b): c\r\n\r\n",
    "no host": b"GET /v1/health HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: y\r\n\r\n",
    "a version of its own": GET.replace(b"1.1", b"1.2") + b"\r\n",
    "a small version": GET.replace(b"HTTP", b"http") + b"\r\n",
    "no version": b"GET /v1/health\r\nHost: x\r\n\r\n",
    "two blanks": GET.replace(b" HTTP", b"  HTTP") + b"\r\n",
    "a tab": GET.replace(b"GET ", b"GET\t") + b"\r\n",
    "another host's path": GET.replace(b"/v1", b"http://x/v1") + b"\r\n",
    "an empty line before": b"\r\n" + GET + b"\r\n",
    "chunks with line feeds": POST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS.replace(b"\r\n", b"\n"),
    "a size with a prefix": POST + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a size without an end": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"2" * 40 + b"\r\n{}\r\n0\r\n\r\n",
    "a chunk without its end": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
}


@contextlib.contextmanager
def dial(daemon, way):
    if way == "admin":
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(harness.DEADLINE)
        s.connect(str(daemon.run / "warren.sock"))
    else:
        s = socket.create_connection(("127.0.0.1", daemon.tls_port if way == "tls" else daemon.port), harness.DEADLINE)
    if way == "tls":
        context = ssl.create_default_context(cafile=daemon.cert)
        context.check_hostname = False
        s = context.wrap_socket(s, server_hostname=daemon.domain)
    with s:
        yield s


def read_answer(s):
    """One answer with a length, and nothing behind it."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        assert piece, got
        got += piece
    head, body = got.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += s.recv(65536)
    assert len(body) == length
    return head, body


def read_all(s):
    got = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while piece := s.recv(65536):
            got += piece
    return got


@pytest.mark.parametrize("place", ("first", "second"))
@pytest.mark.parametrize("way", ("tcp", "admin"))
def test_an_ambiguous_request_is_refused_and_ends_the_connection(daemon, way, place):
    wrong = []
    for name, hostile in HOSTILE.items():
        with dial(daemon, way) as s:
            if place == "second":
                s.sendall(OK)
                assert read_answer(s)[0].startswith(b"HTTP/1.1 200 ")
            s.sendall(hostile + OK)  # and a second request behind it, which nobody may answer
            got = read_all(s)
        head, _, body = got.partition(b"\r\n\r\n")
        refused = (head.startswith(b"HTTP/1.1 400 ") and b"\r\nconnection: close" in head.lower()
                   and len(re.findall(rb"HTTP/1\.[01] \d{3} ", got)) == 1 and json.loads(body)["error"]["code"] == "invalid_request")
        if not refused:
            wrong.append((name, got[:200]))
    assert wrong == []


def test_an_ambiguous_request_is_refused_behind_tls(daemon):
    for name, hostile in HOSTILE.items():
        for place in "first", "second":
            with dial(daemon, "tls") as s:
                if place == "second":
                    s.sendall(OK)
                    assert read_answer(s)[0].startswith(b"HTTP/1.1 200 ")
                s.sendall(hostile + OK)
                got = read_all(s)
            assert got.startswith(b"HTTP/1.1 400 ") and len(re.findall(rb"HTTP/1\.[01] \d{3} ", got)) == 1, (name, place, got[:200])


def test_a_head_that_is_too_long_gets_431(daemon):
    for head in (GET + b"A: " + b"x" * 40_000 + b"\r\n\r\n", GET + b"A: b\r\n" * 200 + b"\r\n",
                 b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"):
        with dial(daemon, "tcp") as s:
            s.sendall(OK)
            read_answer(s)
            s.sendall(head)
            assert read_all(s).startswith(b"HTTP/1.1 431 ")


def test_two_keys_are_refused_and_the_next_request_is_answered(daemon):
    with dial(daemon, "tcp") as s:
        s.sendall(GET + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n")
        assert read_answer(s)[0].startswith(b"HTTP/1.1 400 ")
        s.sendall(OK)
        assert read_answer(s)[0].startswith(b"HTTP/1.1 200 ")


def test_requests_that_come_together_are_answered_in_their_order(daemon):
    ask = b"".join(b"GET /v1/nothing/%d HTTP/1.1\r\nHost: x\r\nX-Request-Id: n%d\r\n\r\n" % (i, i) for i in range(20))
    with dial(daemon, "tcp") as s:
        s.sendall(ask + POST + b"Connection: close\r\nContent-Length: 1\r\n\r\n{")
        got = read_all(s)
    ids = [line for line in got.split(b"\r\n") if line.startswith(b"X-Request-Id: n")]
    assert ids == [b"X-Request-Id: n%d" % i for i in range(20)] and b'"invalid_json"' in got


def test_a_head_in_pieces_and_a_body_in_pieces_are_put_together(daemon):
    with dial(daemon, "tcp") as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(2):
            for i in range(0, len(OK), 7):
                s.sendall(OK[i:i + 7])
            assert read_answer(s)[0].startswith(b"HTTP/1.1 200 ")
            for byte in POST + b"Transfer-Encoding: chunked\r\n\r\n1;ext=1\r\n{\r\n1\r\n[\r\n0\r\nA: b\r\n\r\n":
                s.sendall(bytes([byte]))
            head, body = read_answer(s)
            assert head.startswith(b"HTTP/1.1 400 ") and json.loads(body)["error"]["code"] == "invalid_json"


def test_a_client_that_expects_100_gets_it(daemon):
    with dial(daemon, "tcp") as s:
        s.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(b"[")
        assert read_answer(s)[0].startswith(b"HTTP/1.1 400 ")
        s.sendall(POST.replace(harness.KEY.encode(), b"x" * 40) + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        got = read_all(s)
        assert got.startswith(b"HTTP/1.1 401 ") and b"Connection: close" in got


def test_a_client_of_http_1_0_gets_an_answer_and_the_end(daemon):
    with dial(daemon, "tcp") as s:
        s.sendall(b"GET /v1/health HTTP/1.0\r\n\r\n")
        got = read_all(s)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nConnection: close\r\n" in got
    with dial(daemon, "tcp") as s:
        s.sendall(b"HEAD /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head, _, body = read_all(s).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK") and b"\r\nContent-Length: " in head and body == b""
