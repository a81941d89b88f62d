"""With more connections than there is room for, clients with a key and root still get in, and the daemon still stops."""
import contextlib
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

import harness
from crowd_kit import HEALTH, crowd, p99, took
from harness import until
from test_api_strict import read_all, read_answer
from test_forward import upgrade


@pytest.fixture
def own():
    """A daemon of the test's own."""
    d = harness.Daemon()
    yield d
    d.close()


@pytest.fixture(scope="module")
def small():
    """A daemon with room for few connections."""
    d = harness.Daemon("--connections", "64", "--connections-per-address", "32", "--connections-per-key", "8",
                       "--connections-without-key", "8")
    yield d
    d.close()


def dial(daemon, address="127.0.0.1", said=b""):
    s = socket.socket()
    s.settimeout(harness.DEADLINE)
    s.bind((address, 0))
    s.connect(("127.0.0.1", daemon.port))
    s.sendall(said)
    return s


def threads_of(daemon):
    return int(re.search(r"^Threads:\t(\d+)$", open(f"/proc/{daemon.process.pid}/status").read(), re.M)[1])


def ended(s):
    """Whether the daemon has closed the connection."""
    s.setblocking(False)
    try:
        return s.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_crowd_that_keeps_its_connections_locks_nobody_out(own):
    with crowd("idle", 4400, own.port):
        for _ in range(20):
            assert own.api.ok("GET", "/v1/sandboxes") is not None
        assert own.admin.ok("GET", "/v1/health")["status"] == "ok"
        began = time.monotonic()
        assert own.stop() == 0
        assert time.monotonic() - began < 20
    own.start()
    assert own.api.call("GET", "/v1/sandboxes").status == 200


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_thirty_thousand_strangers_and_a_client_with_a_key(own):
    alone = p99(took(own, 200))
    with crowd("idle", 10_000, own.port), crowd("slow", 10_000, own.port), crowd("half", 10_000, own.port):
        among = p99(took(own, 200))  # each of them was answered
        assert own.admin.ok("GET", "/v1/health")["status"] == "ok"
        assert own.api.call("GET", "/v1/sandboxes").status == 200
        until(lambda: threads_of(own) < 200, "threads to end: whoever waits needs none", harness.DEADLINE * 3)
        began = time.monotonic()
        assert own.stop() == 0
        assert time.monotonic() - began < 20
    own.start()
    assert among < max(20 * alone, 2), (alone, among)  # bench/connections has the strict figure


@pytest.mark.parametrize("kind", ("body", "next", "noise", "long"))
def test_unfinished_requests_keep_nobody_out(own, kind):
    with crowd(kind, 5000, own.port):
        assert own.api.call("GET", "/v1/sandboxes").status == 200
        until(lambda: own.api.with_key(None).call("GET", "/v1/health").status == 200, "a caller without a key")
        assert own.admin.ok("GET", "/v1/health")["status"] == "ok"


def test_a_stranger_that_waits_makes_room_for_a_new_one(small):
    """The longest waiting stranger gives way: of all, or of the same address where that is full; and nobody else."""
    strangers = []
    try:
        for i in range(64):  # one after another: few may be at work at once
            strangers.append(dial(small, f"127.0.0.{2 + i // 32}", HEALTH))
            assert read_answer(strangers[-1])[0].startswith(b"HTTP/1.1 200 ")
        halves = {"127.0.0.2": strangers[:32], "127.0.0.3": strangers[32:]}
        address, among = "127.0.0.9", strangers
        for _ in range(2):
            new = dial(small, address, HEALTH)
            strangers.append(new)
            assert read_answer(new)[0].startswith(b"HTTP/1.1 200 ")
            gone = until(lambda: [s for s in strangers if ended(s)], "one to be closed")
            assert len(gone) == 1 and gone[0] in among
            gone[0].close()
            strangers.remove(gone[0])
            address, among = next((a, half) for a, half in halves.items() if gone[0] not in half)
    finally:
        for s in strangers:
            s.close()


def test_a_key_has_its_share_and_others_theirs(small):
    other = small.admin.ok("POST", "/v1/keys", {"name": "other"})["key"]
    ask = b"GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\nAccept: application/x-ndjson\r\nAuthorization: Bearer %s\r\n\r\n"
    held = [dial(small, said=ask % small.key.encode()) for _ in range(8)]
    try:
        for s in held:
            assert s.recv(100).startswith(b"HTTP/1.1 200 ")
        with dial(small, said=ask % small.key.encode()) as s:
            got = read_all(s)
            assert got.startswith(b"HTTP/1.1 429 ") and b"\r\nRetry-After: " in got and b"Connection: close" in got
        assert small.api.with_key(other).call("GET", "/v1/sandboxes").status == 200
    finally:
        for s in held:
            s.close()
    until(lambda: small.api.call("GET", "/v1/sandboxes").status == 200, "room for the key again")


def gauges(daemon):
    """What /metrics says of open connections, by the end of the name ("": of all)."""
    text = daemon.admin.call("GET", "/metrics").body.decode()
    return {name.lstrip("_"): int(n) for name, n in re.findall(r"^warren_http_connections(\w*) (\d+)$", text, re.M)}


def test_upgraded_connections_are_counted_until_they_end(small, tiny_tar):
    """WebSockets to a port belong to the broker, and still to the connections of their key; a broker that dies frees them."""
    small.api.import_image("tiny", tiny_tar)
    box = small.api.create(image="tiny")["id"]
    other = small.admin.ok("POST", "/v1/keys", {"name": "upgraded"})["key"]
    small.api.with_key(other).start(box, "nc -ll -p 70 -e cat")
    until(lambda: small.api.with_key(other).out(box, "netstat -ltn | grep -c ':70 ' || true").strip() == "1")

    def upgraded():  # what the key had open before may take a moment to be gone
        s, _, status, _ = upgrade(small, box, 70, secret=small.key)
        if status == 101:
            return s
        s.close()
        assert status == 503

    for end in ("close", "kill"):
        with contextlib.ExitStack() as held:
            for _ in range(6):
                held.enter_context(until(upgraded, "a WebSocket"))
            assert upgrade(small, box, 70, secret=small.key)[2] == 503  # a quarter of the key's eight is for requests
            assert small.api.call("GET", "/v1/sandboxes").status == 200
            assert small.api.with_key(other).call("GET", "/v1/sandboxes").status == 200
            now = gauges(small)
            assert now["upgraded"] == 6 and now[""] >= 6 + 1 and "waiting" in now and "without_key" in now
            if end == "kill":
                for pid in small.pids("warren-broker"):
                    os.kill(pid, signal.SIGKILL)
                until(lambda: gauges(small)["upgraded"] == 0, "a broker's death to end them")
        until(lambda: small.api.call("GET", "/v1/sandboxes").status == 200, "room for the key again")
        until(lambda: gauges(small)["upgraded"] == 0, "all of them to be given back")
    small.api.delete(box)


def test_without_room_the_answer_is_a_503_that_says_so(small):
    """No waiting connection could give way: all of them stream."""
    keys = [small.admin.ok("POST", "/v1/keys", {"name": f"k{i}"})["key"] for i in range(4)]
    ask = b"GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\nAccept: application/x-ndjson\r\nAuthorization: Bearer %s\r\n\r\n"
    held = [dial(small, said=ask % keys[i % 4].encode()) for i in range(32)]
    try:
        for s in held:
            assert s.recv(100).startswith(b"HTTP/1.1 200 ")
        with dial(small, said=HEALTH) as s:
            head, body = read_answer(s)
        assert head.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in head and b"\r\nConnection: close" in head
        assert json.loads(body)["error"]["code"] == "capacity"
        assert small.admin.ok("GET", "/v1/health")["status"] == "ok"
        with dial(small, "127.0.0.2", HEALTH) as s:  # another address has its own
            assert read_answer(s)[0].startswith(b"HTTP/1.1 200 ")
    finally:
        for s in held:
            s.close()
    for key in small.admin.ok("GET", "/v1/keys")["keys"]:
        if key["name"].startswith("k"):
            small.admin.ok("DELETE", f"/v1/keys/{key['id']}")


def test_stopping_ends_although_clients_do_not(own):
    box = own.api.ok("GET", "/v1/sandboxes")
    assert box is not None
    streams = [own.api.stream("GET", "/v1/events?follow=true") for _ in range(5)]
    half = dial(own, said=b"PUT /v1/images/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + own.key.encode()
                + b"\r\nContent-Length: 1000000\r\n\r\nxx")
    began = time.monotonic()
    assert own.stop() == 0
    assert time.monotonic() - began < 20
    for s in streams:
        s.close()
    half.close()
    own.start()


def test_stopping_while_answers_are_on_their_way_ends_well(own, tiny_tar):
    own.api.import_image("tiny", tiny_tar)
    box = own.api.create(image="tiny")["id"]
    body = b'{"shell": "sleep 1"}'
    ask = (f"POST /v1/sandboxes/{box}/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {own.key}\r\n"
           f"Content-Length: {len(body)}\r\n\r\n").encode() + body
    clients = [dial(own, said=ask) for _ in range(16)]
    until(lambda: own.api.ok("GET", f"/v1/sandboxes/{box}/processes")["processes"], "a command")
    assert own.stop() == 0
    for s in clients:
        s.close()
    own.start()


def test_many_threads_of_one_client_share_what_there_is(own):
    """Keep-alive under load: each answer is that of its own request."""
    wrong = []

    def ask(n):
        try:
            with dial(own) as s:
                for i in range(50):
                    s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nX-Request-Id: c%d-%d\r\n\r\n" % (n, i))
                    if b"\r\nX-Request-Id: c%d-%d\r\n" % (n, i) not in read_answer(s)[0] + b"\r\n":
                        wrong.append((n, i))
        except Exception as e:  # noqa: BLE001
            wrong.append((n, e))
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(30)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
