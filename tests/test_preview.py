"""Previews: http://<port>-<id>.<domain> leads to what listens in a sandbox."""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading

import pytest

import harness
from harness import until
from preview_kit import connect, get, host_of, raw, serve, site  # noqa: F401 - a fixture

GONE = "a" * 20


def test_a_port_answers_under_its_name(daemon, site):
    reply = get(daemon, host_of(site, 3000), "/a/b?c=d")
    assert reply.status == 200, reply
    seen = reply.json
    headers = dict(map(tuple, seen["headers"]))
    assert seen["path"] == "/a/b?c=d"
    assert headers["host"] == host_of(site, 3000)
    assert headers["x-forwarded-host"] == host_of(site, 3000)
    assert headers["x-forwarded-proto"] == "http"
    assert headers["x-forwarded-for"] == "127.0.0.1"
    # Whatever the case, and with a port.
    assert get(daemon, host_of(site.upper(), 3000, f"Warren.Test:{daemon.port}")).status == 200


def test_a_connection_is_used_again_on_both_sides(daemon, site):
    with connect(daemon) as c:
        seen = []
        for i in range(5):
            c.request("GET", f"/{i}", headers={"Host": host_of(site, 3000)})
            seen.append(json.loads(c.getresponse().read()))
        assert [s["path"] for s in seen] == [f"/{i}" for i in range(5)]
        assert len({s["connection"] for s in seen}) == 1, "the server saw several connections"


def test_bodies_pass_in_both_directions(daemon, site):
    host = host_of(site, 3000)
    data = os.urandom(5_000_000)
    reply = get(daemon, host, "/up", "POST", data)
    assert reply.json["n"] == len(data) and reply.json["sha256"] == hashlib.sha256(data).hexdigest()
    # The same in chunks, of which the client does not know how many.
    pieces = [data[i:i + 70_001] for i in range(0, len(data), 70_001)]
    with connect(daemon) as c:
        c.request("PUT", "/up", body=iter(pieces), headers={"Host": host}, encode_chunked=True)
        seen = json.loads(c.getresponse().read())
    assert seen["n"] == len(data) and seen["sha256"] == hashlib.sha256(data).hexdigest()
    assert "transfer-encoding" in dict(map(tuple, seen["headers"]))

    reply = get(daemon, host, "/big?n=40000000")
    assert len(reply.body) == 40_000_000
    assert reply.body[:65536] == bytes(range(256)) * 256
    assert get(daemon, host, "/until-end").body == b"all of it"
    head = get(daemon, host, "/x", "HEAD")
    assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) > 0
    assert get(daemon, host, "/x", "OPTIONS").json["method"] == "OPTIONS"


def rss_kib(daemon):
    """What the broker has in memory."""
    return sum(int(line.split()[1]) for pid in daemon.pids("warren-broker")
               for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
               if line.startswith("VmRSS"))


def test_a_slow_reader_holds_the_server_back_and_loses_nothing(daemon, site):
    n, before = 30_000_000, rss_kib(daemon)
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", daemon.port))
        s.settimeout(harness.DEADLINE)
        s.sendall(f"GET /big?n={n} HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\n\r\n".encode())
        got = s.recv(1000)
        grown = rss_kib(daemon) - before
        assert grown < 10_000, f"the broker holds {grown} KiB"
        total = len(got.split(b"\r\n\r\n", 1)[1])
        while total < n:
            piece = s.recv(1 << 20)
            assert piece, total
            total += len(piece)


def test_events_come_as_they_are_sent(daemon, site):
    """The server sends the next one only when it was told that the last one arrived."""
    host = host_of(site, 3000)
    with connect(daemon) as c:
        c.request("GET", "/chunked?n=3&wait=1", headers={"Host": host})
        r = c.getresponse()
        assert r.headers["Content-Type"] == "text/event-stream"
        for i in range(3):
            assert r.readline() == b"data: %d\n" % i
            assert r.readline() == b"\n"
            assert get(daemon, host, "/told").body == b"ok"
        assert r.read() == b""


def websocket(sock, host, path="/ws", headers=""):
    key = base64.b64encode(os.urandom(16)).decode()
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
                 f"Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 f"Sec-WebSocket-Key: {key}\r\n{headers}\r\n".encode())
    f = sock.makefile("rb")
    status = f.readline()
    fields = {}
    while (line := f.readline().strip()):
        name, value = line.decode().split(": ", 1)
        fields[name.lower()] = value
    want = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    assert status.startswith(b"HTTP/1.1 101"), status
    assert fields["sec-websocket-accept"] == base64.b64encode(want).decode()
    assert fields["connection"].lower() == "upgrade" and fields["upgrade"] == "websocket"
    return f


def test_a_websocket_passes_bytes_both_ways_and_ends_with_either_side(daemon, site):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        f = websocket(s, host_of(site, 3000))
        for n in (1, 1000, 300_000):
            data = os.urandom(n)
            threading.Thread(target=s.sendall, args=(data,)).start()
            assert f.read(n) == data
        s.shutdown(socket.SHUT_WR)
        assert f.read() == b""


def test_a_client_that_is_gone_without_a_word_is_noticed(daemon, site):
    """A WebSocket may be silent for ever: the kernel asks whether anybody is there, within a minute and not after two hours."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        websocket(s, host_of(site, 3000))

        def asked_within():  # minutes
            out = subprocess.run(["ss", "-tnoH", f"sport = :{daemon.port} and dport = :{s.getsockname()[1]}"],
                                 capture_output=True, text=True, check=True).stdout
            found = re.search(r"timer:\(keepalive,(?:(\d+)min)?", out)
            return found and [int(found[1] or 0)]
        assert until(asked_within, "the kernel's timer")[0] <= 1


def test_e2bs_headers_lead_an_upgrade_to_a_port(daemon, site):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        f = websocket(s, f"127.0.0.1:{daemon.port}", "/e2b/ws",
                      f"E2b-Sandbox-Id: {site}\r\nE2b-Sandbox-Port: 3000\r\n")
        s.sendall(b"hello")
        assert f.read(5) == b"hello"


def test_a_server_on_ipv6_alone_is_reached(daemon, site):
    serve(daemon.api, site, 3006, "::1")
    assert get(daemon, host_of(site, 3006)).status == 200


def test_what_only_warren_may_say_is_not_a_clients_to_say(daemon, site):
    key = "e2b_" + "0123456789abcdef0123" * 2
    reply = get(daemon, host_of(site, 3000), headers={
        "Authorization": f"Bearer {key}", "X-API-Key": key, "X-Access-Token": "ab" * 32,
        "E2b-Traffic-Access-Token": "secret", "X-Verified-User-Data": "root",
        "X-Warren-Team": "ops", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil",
        "X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4", "E2b-Sandbox-Id": GONE,
        "Connection": "keep-alive, X-Hop", "X-Hop": "1", "Keep-Alive": "5", "TE": "trailers",
        "Cookie": "a=b"})
    names = dict(map(tuple, reply.json["headers"]))
    for name in ("authorization", "x-api-key", "x-access-token", "e2b-traffic-access-token",
                 "x-verified-user-data", "x-warren-team", "forwarded", "e2b-sandbox-id", "x-hop",
                 "keep-alive", "te"):
        assert name not in names, name
    assert names["x-forwarded-proto"] == "http"
    assert names["x-forwarded-host"] == host_of(site, 3000)
    assert names["x-forwarded-for"] == "1.2.3.4, 127.0.0.1"
    assert names["cookie"] == "a=b"
    # An application's own credentials are its own.
    reply = get(daemon, host_of(site, 3000), headers={
        "Authorization": "Bearer abc", "X-API-Key": "mine", "X-Access-Token": "t"})
    names = dict(map(tuple, reply.json["headers"]))
    assert (names["authorization"], names["x-api-key"], names["x-access-token"]) == (
        "Bearer abc", "mine", "t")


def test_what_is_not_there_is_said_to_be_so(daemon, site):
    reply = get(daemon, host_of(site, 3999))
    assert reply.status == 502 and reply.code == "port_closed"
    assert (reply.json["sandboxId"], reply.json["port"], reply.json["code"]) == (site, 3999, 502)
    assert reply.json["message"] == "The sandbox is running but port is not open"  # E2B's programs compare it
    reply = get(daemon, host_of(GONE, 3000))
    assert reply.status == 502 and reply.code == "sandbox_not_found"
    assert reply.json["message"] == "The sandbox was not found"
    assert reply.json["error"]["message"].startswith("The sandbox was not found: ")
    page = get(daemon, host_of(GONE, 3000), headers={"Accept": "text/html,*/*"})
    assert page.headers["Content-Type"].startswith("text/html") and GONE.encode() in page.body
    # The connection goes on after such an answer.
    with connect(daemon) as c:
        for host, status in ((host_of(site, 3999), 502), (host_of(site, 3000), 200)):
            c.request("GET", "/", headers={"Host": host})
            r = c.getresponse()
            assert r.status == status
            r.read()


def test_a_sandbox_that_ends_is_gone_at_once_and_one_that_starts_again_answers(daemon):
    api = daemon.api
    sandbox = api.create()["id"]
    serve(api, sandbox, 8080)
    host = host_of(sandbox, 8080)
    with connect(daemon) as c:
        c.request("GET", "/", headers={"Host": host})
        assert c.getresponse().read()
        api.ok("POST", f"/v1/sandboxes/{sandbox}/stop")
        until(lambda: get(daemon, host).code == "sandbox_not_running", "the page of a stopped one")
        api.ok("POST", f"/v1/sandboxes/{sandbox}/start")
        until(lambda: get(daemon, host).code == "port_closed", "the page of a closed port")
        serve(api, sandbox, 8080)
        c.request("GET", "/again", headers={"Host": host})
        assert json.loads(c.getresponse().read())["path"] == "/again"
    api.delete(sandbox)
    until(lambda: get(daemon, host).code == "sandbox_gone", "the page of a deleted one")


@pytest.mark.parametrize("bad", [
    "GET / HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n",
    "GET / HTTP/1.1\nHost: {host}\n\n",
    "GET / HTTP/1.1\r\nHost: {host}\r\nX: a\r\n b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {host}\r\nX : a\r\n\r\n",
    "GET http://x/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {host}\r\nA: b\rc\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n",
], ids=lambda _: "request")
def test_a_request_that_could_be_understood_in_two_ways_is_refused(daemon, site, bad):
    got = raw(daemon, bad.format(host=host_of(site, 3000)).encode() +
              b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 400 "), got[:200]
    assert got.count(b"\r\n\r\n") == 1 and b"smuggled" not in got


def test_a_head_without_end_is_refused(daemon, site):
    start = f"GET / HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\n".encode()
    assert raw(daemon, start + b"A: " + b"x" * 40_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431 ")
    assert raw(daemon, start + b"A: b\r\n" * 200 + b"\r\n").startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("answer", [
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
    b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"",
], ids=lambda _: "answer")
def test_an_answer_that_makes_no_sense_becomes_an_honest_one(daemon, site, answer):
    path = "/raw?b64=" + base64.b64encode(answer).decode().replace("+", "%2B")
    reply = get(daemon, host_of(site, 3000), path)
    assert reply.status == 502 and reply.code == "bad_answer", reply


def test_a_script_that_ends_lines_its_own_way_is_understood(daemon, site):
    answer = base64.b64encode(b"HTTP/1.0 200 OK\n\nhi").decode()
    reply = get(daemon, host_of(site, 3000), f"/raw?b64={answer}")
    assert reply.status == 200 and reply.body == b"hi"


def test_bytes_behind_an_answer_reach_nobody_else(daemon, site):
    """A server cannot prepare an answer for the next request on a connection."""
    extra = base64.b64encode(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                             b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").decode()
    with connect(daemon) as c:
        c.request("GET", f"/raw?b64={extra}", headers={"Host": host_of(site, 3000)})
        assert c.getresponse().read() == b"ok"
        c.request("GET", "/next", headers={"Host": host_of(site, 3000)})
        assert json.loads(c.getresponse().read())["path"] == "/next"


def test_requests_sent_at_once_are_answered_in_order(daemon, site):
    one = f"GET /%d HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\n"
    got = raw(daemon, "".join(one % i + "\r\n" for i in range(4)).encode() +
              (one % 4 + "Connection: close\r\n\r\n").encode())
    places = [got.index(f'"path": "/{i}"'.encode()) for i in range(5)]
    assert places == sorted(places) and got.count(b"HTTP/1.1 200") == 5


def test_the_api_is_behind_the_same_connection(daemon, site):
    """A proxy in front of Warren shares its connections among all hosts."""
    with connect(daemon) as c:
        for i in range(2):
            c.request("GET", "/", headers={"Host": host_of(site, 3000)})
            assert c.getresponse().read()
            c.request("GET", "/v1/health", headers={"Host": "127.0.0.1"})
            assert json.loads(c.getresponse().read())["keeper"] is True
            c.request("POST", f"/v1/sandboxes/{site}/exec", body=json.dumps({"shell": "echo hi"}),
                      headers={"Host": "x", "Authorization": f"Bearer {daemon.key}"})
            assert json.loads(c.getresponse().read())["stdout"] == "hi\n"


def test_e2bs_own_ports_are_answered_by_warren(daemon, site):
    assert get(daemon, host_of(site, 49983), "/health").status == 204
    assert get(daemon, host_of(GONE, 49983), "/health").status == 502
    # The sandbox is the one that the Host names, whatever a client writes beside it.
    reply = get(daemon, host_of(GONE, 49983), "/health", headers={"E2b-Sandbox-Id": site})
    assert reply.status == 502


def test_a_broker_that_is_killed_is_back_at_once(daemon, site):
    before = daemon.pids("warren-broker")
    assert len(before) == 1
    with connect(daemon) as c:
        c.request("GET", "/", headers={"Host": host_of(site, 3000)})
        c.getresponse().read()
        os.kill(before[0], signal.SIGKILL)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            c.request("GET", "/", headers={"Host": host_of(site, 3000)})
            c.getresponse()
    # What comes while it is away waits for the next one.
    assert get(daemon, host_of(site, 3000)).status == 200
    assert daemon.pids("warren-broker") != before


def test_connections_that_come_while_the_broker_is_busy_wait_for_it(daemon, site):
    request = f"GET /x HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\nConnection: close\r\n\r\n".encode()
    broker = daemon.pids("warren-broker")[0]
    with contextlib.ExitStack() as stack:
        os.kill(broker, signal.SIGSTOP)
        try:
            held = [stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE))
                    for _ in range(600)]  # more than the link between the two has room for
            for s in held:
                s.sendall(request)
            # The API is not held up; when it has answered, those before it were taken.
            assert daemon.api.get(site)["id"] == site
        finally:
            os.kill(broker, signal.SIGCONT)
        for s in held:
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_the_domain_is_localhost_unless_said(fresh):
    reply = get(fresh, host_of(GONE, 3000, "localhost"))
    assert reply.status == 502 and reply.code == "sandbox_not_found"


# -- TLS

def secure(daemon, host, alpn=None):
    context = ssl.create_default_context(cafile=daemon.cert)
    if alpn:
        context.set_alpn_protocols(alpn)
    raw_socket = socket.create_connection(("127.0.0.1", daemon.tls_port), timeout=harness.DEADLINE)
    return context.wrap_socket(raw_socket, server_hostname=host)


def ask(sock, host, path, method="GET", body=b"", headers=None):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}",
             *(f"{k}: {v}" for k, v in (headers or {}).items())]
    sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    r = http.client.HTTPResponse(sock, method=method)
    r.begin()
    return harness.Reply(r.status, r.headers, r.read())


def test_previews_and_the_api_answer_under_tls(daemon, site):
    host = host_of(site, 3000)
    with secure(daemon, host, ["h2", "http/1.1"]) as s:
        assert s.selected_alpn_protocol() == "http/1.1"
        for _ in range(3):
            reply = ask(s, host, "/x")
            headers = dict(map(tuple, reply.json["headers"]))
            assert headers["x-forwarded-proto"] == "https"
            data = os.urandom(3_000_000)
            assert ask(s, host, "/up", "POST", data).json["sha256"] == hashlib.sha256(data).hexdigest()
            assert len(ask(s, host, "/big?n=5000000").body) == 5_000_000
            # The API, on the same connection; and as E2B's clients call it.
            key = {"Authorization": f"Bearer {daemon.key}", "X-API-Key": daemon.key}
            assert ask(s, "127.0.0.1", f"/v1/sandboxes/{site}", headers=key).json["id"] == site
            assert ask(s, "127.0.0.1", f"/v1/sandboxes/{site}").status == 401
            reply = ask(s, f"api.{daemon.domain}", f"/sandboxes/{site}", headers=key)
            assert reply.json["sandboxID"] == site
            assert reply.json["domain"] == f"{daemon.domain}:{daemon.tls_port}"
            assert ask(s, host_of(site, 49983), "/health").status == 204


def test_new_files_of_the_certificate_are_used_and_nobody_is_cut_off(daemon, site):
    """Only root can read the key, and the broker is not root."""
    host, old, files = host_of(site, 3000), daemon.cert, [daemon.cert, daemon.dir / "key.pem"]
    before = [f.read_bytes() for f in files]

    def trusted():
        with contextlib.suppress(ssl.SSLError), secure(daemon, host) as s:
            return ask(s, host, "/x").status == 200

    brokers = daemon.pids("warren-broker")
    with secure(daemon, host) as open_before:
        try:
            daemon.certify()  # the same names, another key; from now on `secure` believes this one alone
            files[1].chmod(0o400)
            until(trusted, "the new certificate")
            files[1].write_bytes(before[1])  # does not fit: what was good stays
            until(lambda: "do not fit each other" in daemon.log(), "the log to say so")
            assert trusted()
        finally:
            for f, text in zip(files, before):
                f.write_bytes(text)
        until(trusted, "the former certificate")
        assert ask(open_before, host, "/x").status == 200
    assert daemon.pids("warren-broker") == brokers and daemon.cert == old


def test_a_websocket_passes_under_tls(daemon, site):
    host = host_of(site, 3000)
    with secure(daemon, host) as s:
        f = websocket(s, host)
        for n in (1, 20_000):
            data = os.urandom(n)
            s.sendall(data)
            assert f.read(n) == data


def test_what_is_not_tls_costs_a_bounded_time(daemon, site):
    with socket.create_connection(("127.0.0.1", daemon.tls_port), timeout=harness.DEADLINE) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while s.recv(4096):
                pass
    context = ssl.create_default_context(cafile=daemon.cert)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", daemon.tls_port), timeout=harness.DEADLINE) as s:
        with context.wrap_socket(s, server_hostname=host_of(site, 3000)) as t:
            assert ask(t, host_of(site, 3000), "/x").status == 200


def test_a_certificate_that_is_not_there_is_said_at_the_start(tmp_path):
    done = subprocess.run([harness.BUILD / "warrend", "--listen", "127.0.0.1:0", "--data", tmp_path / "d",
                           "--run", tmp_path / "r", "--tls-listen", "127.0.0.1:0", "--tls-cert", "x"],
                          capture_output=True, text=True, timeout=harness.DEADLINE)
    assert done.returncode == 2 and "go together" in done.stderr


# -- E2B's settings

def test_a_private_sandbox_wants_its_token_and_a_mask_is_told(daemon):
    def call(method, path, body=None):
        return daemon.api.call(method, f"/e2b{path}", body, {"X-API-Key": daemon.key})
    made = call("POST", "/v2/sandboxes", {"templateID": "base", "network": {
        "allowPublicTraffic": False, "maskRequestHost": "localhost:${PORT}"}})
    assert made.status == 201, made
    sandbox, token = made.json["sandboxID"], made.json["trafficAccessToken"]
    try:
        serve(daemon.api, sandbox, 3000)
        host = host_of(sandbox, 3000)
        assert get(daemon, host).status == 403
        assert get(daemon, host, headers={"e2b-traffic-access-token": "0" * 64}).status == 403
        reply = get(daemon, host, headers={"E2B-Traffic-Access-Token": token})
        assert reply.status == 200
        headers = dict(map(tuple, reply.json["headers"]))
        assert headers["host"] == "localhost:3000" and headers["x-forwarded-host"] == host
        assert "e2b-traffic-access-token" not in headers
        # What these clients asked for is not among the labels that others change.
        assert daemon.api.ok("PATCH", f"/v1/sandboxes/{sandbox}", {"metadata": {"mine": "1"}})["metadata"] == {"mine": "1"}
        again = get(daemon, host, headers={"E2B-Traffic-Access-Token": token})
        assert dict(map(tuple, again.json["headers"]))["host"] == "localhost:3000"
        # Nor does a connection that was opened with the token serve those without one.
        assert get(daemon, host).status == 403
        named = {"E2b-Sandbox-Id": sandbox, "E2b-Sandbox-Port": "3000"}
        assert get(daemon, "x", "/e2b/", headers=named).status == 403
        assert get(daemon, "x", "/e2b/", headers={**named, "E2B-Traffic-Access-Token": token}).status == 200
        listed = call("GET", f"/sandboxes/{sandbox}").json
        assert listed["metadata"] == {"mine": "1"}
    finally:
        daemon.api.delete(sandbox)
    bad = call("POST", "/v2/sandboxes", {"templateID": "base", "network": {"maskRequestHost": "a b"}})
    assert bad.status == 400
