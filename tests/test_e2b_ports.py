"""A port of a sandbox through E2B's headers: what listens there gets the request, and its answer comes back."""
import contextlib
import hashlib
import http.client
import json
import socket

import pytest

from harness import until

WEB = '''
import hashlib, json, socket, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def pieces(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            while n := int(self.rfile.readline(), 16):
                yield self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read(min(left, 65536))
            left -= len(piece)
            yield piece
    def answer(self):
        if self.path == "/stream":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in self.pieces():  # each is answered before the next one is asked for
                self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\\r\\n\\r\\n")
            return
        if self.path == "/wait":
            open("/tmp/waiting", "w").close()
            self.connection.recv(1)
            open("/tmp/left", "w").close()
            self.close_connection = True
            return
        digest, size = hashlib.sha256(), 0
        for piece in self.pieces():
            digest.update(piece)
            size += len(piece)
        body = json.dumps({"method": self.command, "path": self.path, "size": size, "sha": digest.hexdigest(),
                           "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
        if self.path.startswith("/large"):
            body = bytes(range(256)) * 65536
        self.send_response(int(self.path.split("status=")[1]) if "status=" in self.path else 200)
        self.send_header("X-Odd", "a; b")
        self.send_header("Set-Cookie", "one=1")
        self.send_header("Set-Cookie", "two=2")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = do_BREW = answer

ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
'''

RAW = '''
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 8001)); s.listen(8)
answers = {
    b"/silent": b"",
    b"/noise": b"\\x00\\x01 what is this\\n",
    b"/flood": b"HTTP/1.1 200 OK\\r\\n" + b"X: y\\r\\n" * 100000,
    b"/short": b"HTTP/1.1 200 OK\\r\\nContent-Length: 100\\r\\n\\r\\nonly this",
    b"/cut": b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nhello\\r\\n",
    b"/early": b"HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nX-Real: yes\\r\\nContent-Length: 2\\r\\n\\r\\nok",
    b"/old": b"HTTP/1.0 200 OK\\r\\n\\r\\nuntil the end",
    b"/lies": b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nContent-Length: 7\\r\\n\\r\\nhello!!",
    b"/code": b"HTTP/1.1 99999 No\\r\\nContent-Length: 0\\r\\n\\r\\n",
}
while True:
    c, _ = s.accept()
    try:
        f = c.makefile("rb")
        line = f.readline().split()
        while len(f.readline()) > 2: pass
        c.sendall(answers.get(line[1], b""))
        f.close()
    except (OSError, IndexError):
        pass
    c.close()
'''


@pytest.fixture(scope="module")
def served(daemon):
    """A sandbox of E2B's kind with a web server on 8000 and one that answers nonsense on 8001."""
    made = daemon.api.ok("POST", "/e2b/v2/sandboxes", {"templateID": "base", "timeout": 600}, headers={
        "X-API-Key": daemon.key, "Authorization": ""})
    who = made["sandboxID"]
    for code in (WEB, RAW):
        daemon.api.start(who, ["python3", "-c", code])
    until(lambda: daemon.api.exec(who, "python3 -c 'import socket\nfor p in (8000, 8001):"
                                  " socket.create_connection((\"127.0.0.1\", p))'")["exit_code"] == 0, "the servers")
    yield daemon, made
    daemon.api.delete(who)


def ask(served, method, path, body=None, port=8000, headers=None, who=None):
    daemon, made = served
    con = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    with contextlib.closing(con):
        con.request(method, f"/e2b{path}", body=body, headers={
            "E2b-Sandbox-Id": who or made["sandboxID"], "E2b-Sandbox-Port": str(port), **(headers or {})})
        answer = con.getresponse()
        return answer, answer.read()


def test_any_method_any_path(served):
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"):
        answer, body = ask(served, method, "/a%2Fb//c?x=%20y&z", b"data" if method != "GET" else None)
        seen = json.loads(body)
        assert (answer.status, seen["method"], seen["path"]) == (200, method, "/a%2Fb//c?x=%20y&z")
        assert seen["size"] == (0 if method == "GET" else 4)
    assert json.loads(ask(served, "GET", "")[1])["path"] == "/"
    assert json.loads(ask(served, "GET", "?q=1")[1])["path"] == "/?q=1"
    answer, body = ask(served, "HEAD", "/large")
    assert (answer.headers["Content-Length"], body) == (str(256 * 65536), b"")


def test_headers_go_through_and_credentials_do_not(served):
    daemon, made = served
    answer, body = ask(served, "GET", "/", headers={
        "X-Mine": "yes", "X-Empty": "", "Authorization": f"Bearer {daemon.key}", "X-API-Key": daemon.key,
        "X-Access-Token": made["envdAccessToken"], "Connection": "keep-alive", "E2b-Sandbox-Env": "x"})
    seen = json.loads(body)["headers"]
    assert (seen["x-mine"], seen["x-empty"], seen["host"]) == ("yes", "", "localhost:8000")
    assert not seen.keys() & {"authorization", "x-api-key", "x-access-token", "e2b-sandbox-env"}
    assert seen["connection"] == "close"
    assert answer.headers.get_all("Set-Cookie") == ["one=1", "two=2"]
    assert answer.headers["X-Odd"] == "a; b"
    # A program's own are its own.
    seen = json.loads(ask(served, "GET", "/", headers={"Authorization": "Basic dTpw", "X-API-Key": "app"})[1])["headers"]
    assert (seen["authorization"], seen["x-api-key"]) == ("Basic dTpw", "app")


@pytest.mark.parametrize("status", [201, 302, 400, 401, 404, 405, 429, 500, 503])
def test_its_status_is_the_answer(served, status):
    answer, _ = ask(served, "GET", f"/?status={status}")
    assert answer.status == status
    assert not answer.headers["WWW-Authenticate"] and not answer.headers["Retry-After"]


def test_no_content_and_not_modified_have_no_body(served):
    for status in (204, 304):
        answer, body = ask(served, "GET", f"/?status={status}")
        assert (answer.status, body) == (status, b"")


def test_large_bodies_go_through_both_ways(served):
    data = bytes(range(256)) * 131072
    seen = json.loads(ask(served, "POST", "/", data)[1])
    assert (seen["size"], seen["sha"]) == (len(data), hashlib.sha256(data).hexdigest())
    seen = json.loads(ask(served, "PUT", "/", iter([data[:100], data[100:70000], data[70000:]]))[1])
    assert (seen["size"], seen["sha"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert ask(served, "GET", "/large")[1] == bytes(range(256)) * 65536
    assert ask(served, "POST", "/stream", iter([data[:100], data[100:20000]]))[1] == data[:20000]


def test_an_answer_far_ahead_of_its_request_is_refused(served):
    """One after the other is all that this way can do: it must say so and not wait for ever."""
    answer, body = ask(served, "POST", "/stream", iter([bytes(65536)] * 256))
    assert (answer.status, json.loads(body)["code"]) == (502, 502)


def test_a_client_that_leaves_is_noticed(served):
    daemon, made = served
    with socket.create_connection(("127.0.0.1", daemon.port)) as s:
        s.sendall(f"GET /e2b/wait HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: {made['sandboxID']}\r\n"
                  "E2b-Sandbox-Port: 8000\r\n\r\n".encode())
        until(lambda: daemon.api.exec(made["sandboxID"], "test -e /tmp/waiting")["exit_code"] == 0, "the request")
    until(lambda: daemon.api.exec(made["sandboxID"], "test -e /tmp/left")["exit_code"] == 0, "its end")


@pytest.mark.parametrize("path", ["/silent", "/noise", "/flood", "/code"])
def test_what_is_not_an_answer_is_told(served, path):
    answer, body = ask(served, "GET", path, port=8001)
    told = json.loads(body)
    assert (answer.status, told["code"], told["port"], told["sandboxId"]) == (502, 502, 8001, served[1]["sandboxID"])


@pytest.mark.parametrize("path", ["/short", "/cut"])
def test_an_answer_that_is_cut_is_cut(served, path):
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(served, "GET", path, port=8001)


def test_old_and_early_answers(served):
    answer, body = ask(served, "GET", "/early", port=8001)
    assert (answer.status, answer.headers["X-Real"], body) == (200, "yes", b"ok")
    assert ask(served, "GET", "/old", port=8001)[1] == b"until the end"


def test_a_length_is_told_once(served):
    answer, body = ask(served, "GET", "/lies", port=8001)
    assert answer.headers.get_all("Content-Length") == [str(len(body))]


def test_who_and_where_must_be_right(served):
    answer, body = ask(served, "GET", "/", port=8002)
    assert (answer.status, json.loads(body)["message"]) == (502, "The sandbox is running but port is not open")
    answer, body = ask(served, "GET", "/", who="q" * 20)
    assert (answer.status, json.loads(body)["message"]) == (502, "The sandbox was not found")
    for port in ("0", "65536", "99999999999999999999", "x", "-1", "80 80", ""):
        assert ask(served, "GET", "/", port=port)[0].status == 400
    assert ask(served, "GET", "/", who="../etc")[0].status == 400


def test_code_is_run_for_those_with_the_token_only(served):
    """Where nothing listens a good token meets a closed port, and a bad one does not get that far."""
    token = served[1]["envdAccessToken"]
    assert ask(served, "POST", "/execute", b"{}", port=49999)[0].status == 401
    assert ask(served, "POST", "/execute", b"{}", 49999, {"X-Access-Token": token[:-1] + "x"})[0].status == 401
    assert ask(served, "GET", "/contexts", None, 49999, {"X-Access-Token": "no"})[0].status == 401
    assert ask(served, "POST", "/execute", b"{}", 49999, {"X-Access-Token": token})[0].status == 502


def test_a_page_may_ask_with_the_headers_of_the_clients(served):
    """What they send in a browser; a preflight has none of it, only its names."""
    daemon, made = served
    nobody, where = daemon.api.with_key(None), made["sandboxID"]
    names = ["x-access-token", "e2b-sandbox-id", "e2b-sandbox-port", "connect-protocol-version", "sdk_runtime", "x-api-key"]
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": ",".join(names)}
    for path, host in (("/e2b/process.Process/Start", None), ("/e2b/execute", None), ("/e2b/v2/sandboxes", None),
                       ("/process.Process/Start", f"49983-{where}"), ("/execute", f"49999-{where}"), ("/v2/sandboxes", "api")):
        told = nobody.call("OPTIONS", path, headers={**preflight, **({"Host": f"{host}.{daemon.domain}"} if host else {})})
        assert told.status == 204, (path, host, told)
        assert told.headers["Access-Control-Allow-Origin"] == "*"
        assert "POST" in told.headers["Access-Control-Allow-Methods"].split(", ")
        assert {"*", "Authorization"} <= set(told.headers["Access-Control-Allow-Headers"].split(", "))
    page = daemon.api.call("GET", "/e2b/v2/sandboxes", headers={"Origin": "https://app.example"})
    assert "X-Next-Token" in page.headers["Access-Control-Expose-Headers"]
    # What a program of the sandbox's is asked is its own to answer.
    answer, body = ask(served, "OPTIONS", "/own", port=8000, headers=preflight)
    assert (answer.status, json.loads(body)["method"]) == (200, "OPTIONS")


def test_a_private_sandbox_wants_its_token(daemon):
    made = daemon.api.ok("POST", "/e2b/v2/sandboxes", {"templateID": "base", "network": {"allowPublicTraffic": False}})
    served = daemon, made
    try:
        for headers in ({}, {"E2b-Traffic-Access-Token": "no"}, {"X-Access-Token": made["envdAccessToken"]}):
            assert ask(served, "GET", "/", headers=headers)[0].status == 403
        headers = {"E2b-Traffic-Access-Token": made["trafficAccessToken"]}
        assert ask(served, "GET", "/", headers=headers)[0].status == 502  # nothing listens
    finally:
        daemon.api.delete(made["sandboxID"])


def test_a_paused_sandbox_is_woken_by_who_may(daemon):
    """As envd is: with the sandbox's token a touch starts it, without it is as if it were gone."""
    made = daemon.api.ok("POST", "/e2b/v2/sandboxes", {"templateID": "base", "timeout": 600, "autoResume": {"enabled": True}})
    served, who = (daemon, made), made["sandboxID"]
    try:
        daemon.api.ok("POST", f"/v1/sandboxes/{who}/stop")
        told = json.loads(ask(served, "GET", "/")[1])
        assert told["message"] == "The sandbox was not found"
        answer, body = ask(served, "GET", "/", headers={"X-Access-Token": made["envdAccessToken"]})
        assert json.loads(body)["message"] == "The sandbox is running but port is not open"
    finally:
        daemon.api.delete(who)
