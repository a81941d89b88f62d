"""Keys that never enter a sandbox: real programs inside, real servers outside, and a server that tells all it hears."""
import base64
import hashlib
import hmac
import json
import os
import re
import shlex
import signal
import ssl
import subprocess
import uuid

import pytest

import echo_kit
from harness import until

HOST, PORT, WRONG_PORT = "odd.good.test", 4443, 4444
PASSWORD = "gitp4ss-" + uuid.uuid4().hex


@pytest.fixture(scope="module")
def api(net):
    return net.api


@pytest.fixture(scope="module")
def value():
    return "sk-live/" + uuid.uuid4().hex + "+\"&é"


@pytest.fixture(scope="module")
def echo(world):
    """On the usual port and another one; beside it, one with a certificate that nobody signed."""
    e = echo_kit.Echo()
    echo_kit.serve(world, world.odd, 443, e)
    echo_kit.serve(world, world.odd, PORT, e)
    key, cert = world.dir / "own.key", world.dir / "own.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                    f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    echo_kit.serve(world, world.odd, WRONG_PORT, e, context)
    return e


@pytest.fixture(scope="module")
def secrets(api, value):
    names = {"key": value, "git": PASSWORD, "aws": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
    for name, is_ in names.items():
        api.ok("POST", "/v1/secrets", {"name": f"b-{name}", "value": is_})
    yield
    for name in names:
        api.call("DELETE", f"/v1/secrets/b-{name}")


BINDINGS = [
    {"secret": "b-key", "host": HOST, "path": "/v1/*", "methods": ["GET", "POST"], "as": "bearer", "name": "echo"},
    {"secret": "b-key", "host": HOST, "path": "/key/*", "as": "header", "header": "x-api-key"},
    {"secret": "b-key", "host": HOST, "path": "/query/*", "as": "query", "query": "k"},
    {"secret": "b-key", "host": HOST, "path": "/basic/*", "as": "basic", "user": "me"},
    {"secret": "b-key", "host": HOST, "port": WRONG_PORT, "path": "/*", "name": "wrong"},
    {"secret": "b-key", "host": HOST, "port": PORT, "path": "/*", "name": "other"},
    {"secret": "b-aws", "host": HOST, "path": "/aws/*", "as": "sigv4", "access_key": "AKIDEXAMPLE", "region": "eu-west-1", "service": "lambda"},
    {"secret": "b-aws", "host": HOST, "path": "/s3/*", "as": "sigv4", "access_key": "AKIDEXAMPLE", "region": "eu-west-1", "service": "s3"},
    {"secret": "b-key", "host": "good.test", "path": "/*", "as": "header", "header": "x-api-key"},
    {"secret": "b-git", "host": "git.good.test", "as": "git", "user": "me"},
]


@pytest.fixture(scope="module")
def box(api, echo, secrets, world):
    """No network but its bindings."""
    digest = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], check=True, capture_output=True, text=True).stdout.strip()
    (world.dir / "passwords").write_text(f"me:{digest}\n")
    sandbox = api.create(bindings=BINDINGS, user="user")["id"]
    yield sandbox
    api.call("DELETE", f"/v1/sandboxes/{sandbox}")


def curl(api, box, url, *args, **more):
    return api.out(box, ["curl", "-sS", "--max-time", "60", *args, url], **more)


def forms(value):
    """What must not be seen, without the ends that neighbours share in base64."""
    import base64
    raw = value.encode()
    shifted = [base64.b64encode(b"x" * n + raw).decode()[4:4 + 4 * (len(raw) // 3 - 1)] for n in range(3)]
    return [value, raw.hex(), *shifted, *(s.replace("+", "-").replace("/", "_") for s in shifted), value.split("/")[1][:32]]


def hidden(text, value):
    flat = re.sub(r"[\r\n]", "", text)
    folded = re.sub(r"[\s\0:,=-]", "", text).lower()
    secret = value.split("/")[1][:32].encode()  # letters and digits alone
    plain = base64.b32encode(secret).decode().lower()
    changed = [secret.decode(), secret.decode()[::-1], secret.hex(), "".join(map(str, secret)), plain[8:40],
               *("".join(f % b for b in secret) for f in ("\\%03o", "%%25%02x"))]
    return not any(form in flat for form in forms(value)) and not any(form in folded for form in changed)


def entries(api, box):
    return api.ok("GET", f"/v1/sandboxes/{box}/network/log")["entries"]


# -- both ways

def test_the_hosts_own_name_carries_the_secret_and_no_echo_shows_it(api, box, echo, value):
    before = len(echo.seen)
    paths = [*echo_kit.FORMS, "chunks", "close"]
    urls = [a for p in paths for a in ("-o", f"/tmp/echo-{p}", "-D", f"/tmp/head-{p}", f"https://{HOST}/v1/{p}", "--next", "-sS")][:-2]
    api.out(box, ["curl", "-sS", "--max-time", "60", *urls])
    heads = [h for h, _ in echo.seen[before:]]
    assert len(heads) == len(paths) and all(f"Authorization: Bearer {value}\r\n" in h for h in heads)
    assert all(re.search(r"(?m)^Accept-Encoding: identity\r$", h) and f"Host: {HOST}\r\n" in h for h in heads)
    told = json.loads(api.out(box, ["python3", "-c", "import json,glob;print(json.dumps({p: open(p, errors='replace').read() for p in glob.glob('/tmp/*-*')}))"]))
    for path in paths:
        assert "*" * 20 in told[f"/tmp/echo-{path}"], path
        assert hidden(told[f"/tmp/echo-{path}"], value) and hidden(told[f"/tmp/head-{path}"], value), path


@pytest.fixture
def answers(api, echo, secrets):
    """A sandbox with bindings that each let less of an answer back."""
    bindings = [{"secret": "b-key", "host": HOST, "path": f"/{answer}/*", "as": "header", "header": "x-api-key", "answer": answer}
                for answer in ("json-only", "status", "none")]
    sandbox = api.create(bindings=bindings, network="open")["id"]
    yield sandbox
    api.call("DELETE", f"/v1/sandboxes/{sandbox}")


def test_no_more_of_an_answer_comes_back_than_its_binding_says(api, answers, echo, value):
    box = answers

    def get(answer, path, *more):
        before = len(echo.seen)
        said = curl(api, box, f"https://{HOST}/{answer}/{path}", "-i", *more).replace("\r\n", "\n")
        assert len(echo.seen) == before + 1 and f"x-api-key: {value}\r\n" in echo.seen[-1][0], "the request went out as ever"
        return said
    assert get("none", "told") == "HTTP/1.1 204 \n\n" and get("none", "else") == "HTTP/1.1 204 \n\n"
    assert get("none", "sum", "--data-binary", "@/bin/bash") == "HTTP/1.1 204 \n\n"
    assert get("status", "told") == "HTTP/1.1 201 \nContent-Length: 0\n\n" and get("status", "else").startswith("HTTP/1.1 404 \n")
    assert get("status", "sum", "-I") == "HTTP/1.1 200 \nContent-Length: 0\n\n"
    head, body = get("json-only", "told").split("\n\n")
    assert re.fullmatch(r"HTTP/1.1 201 \nContent-Type: application/json\nContent-Length: \d+", head)
    told = json.loads(body)
    assert told["n"] == [1, 2.5, None, True] and set(told["carried"]) == set(told["hex"]) == {"*"}
    for path in ("gzip", "chunks", "sum"):
        assert "binding_answer_withheld" in get("json-only", path), path
    upgrade = ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Key: eA==", "-H", "Sec-WebSocket-Version: 13"]
    assert "binding_answer_withheld" in curl(api, box, f"https://{HOST}/status/ws", *upgrade)
    # A request that carries nothing does not bring back what another one left there.
    assert curl(api, box, f"https://{HOST}/v2/sum", "-i").startswith("HTTP/1.1 204 ")
    # One connection serves requests of every kind.
    assert curl(api, box, f"https://{HOST}/none/told", "-w", "%{http_code} ", "-o", "/dev/null", f"https://{HOST}/status/told", "-o", "/dev/null") == "201 204 "


def test_its_use_is_on_the_page_of_what_was_reached(api, box, echo, value):
    curl(api, box, f"https://{HOST}/v1/plain")
    def told():
        page = api.ok("GET", f"/v1/sandboxes/{box}/blast")
        reached = any(h["host"] == HOST and h["sent_bytes"] for h in page["reached"])
        return page if reached and any(s["used"] for s in page["secrets"]) else None
    page = until(told)
    assert value not in str(page)


def test_its_use_is_told_of_when_the_log_has_forgotten_it(api, secrets, echo, value):
    """A program that fills the log with other things, and is then kept from the key, hides nothing by it."""
    sandbox = api.create(bindings=[BINDINGS[0], dict(BINDINGS[8], path="/never/*")], user="user")["id"]
    def used():
        return {(s["secret"], s["host"], s["path"]): s["used"] for s in api.ok("GET", f"/v1/sandboxes/{sandbox}/blast")["secrets"]}
    try:
        for _ in range(2):
            curl(api, sandbox, f"https://{HOST}/v1/plain")
        until(lambda: [e for e in api.events(sandbox=sandbox)["events"] if e["type"] == "secret.used"], "the event")
        def forgotten():
            api.out(sandbox, ["python3", "-c", "import socket\nfor i in range(600):\n s = socket.socket()\n"
                              " s.connect_ex(('198.51.100.9', 1 + i))\n s.close()"])
            return not any(e["binding"] for e in entries(api, sandbox))
        until(forgotten, "a log of other things")
        until(lambda: used() == {("b-key", HOST, "/v1/*"): 2, ("b-key", "good.test", "/never/*"): 0}, "both uses")
        api.ok("PATCH", f"/v1/sandboxes/{sandbox}", {"bindings": []})
        assert used() == {("b-key", HOST, None): 2}
    finally:
        api.delete(sandbox)


@pytest.mark.parametrize("path, carried", [("key", "x-api-key: {}"), ("query", "?a=1&k={quoted}"), ("basic", "Authorization: Basic {basic}")])
def test_each_form_reaches_the_server_and_nobody_else(api, box, echo, value, path, carried):
    import base64
    import urllib.parse
    wanted = carried.format(value, quoted=urllib.parse.quote(value, safe="-._~"), basic=base64.b64encode(f"me:{value}".encode()).decode())
    for form in ("raw", "base64", "json", "percent"):
        target = f"/{path}/{form}" + ("?a=1&k=mine" if path == "query" else "")
        said = curl(api, box, f"https://{HOST}{target}", "-i", "-H", "X-Api-Key: mine", "-H", "Authorization: Basic bWluZQ==")
        assert wanted in echo.seen[-1][0], echo.seen[-1]
        assert hidden(said, value) and "***" in said
        assert base64.b64encode(f"me:{value}".encode()).decode()[:-4] not in said


def test_an_internal_name_does_the_same_without_tls_inside(api, box, echo, value):
    said = curl(api, box, "http://echo.warren/v1/raw", "-i", "-H", "Authorization: Bearer mine", "-H", "Authorization: Bearer yours")
    assert f"Authorization: Bearer {value}\r\n" in echo.seen[-1][0] and echo.seen[-1][0].count("uthorization") == 1
    assert f"Host: {HOST}\r\n" in echo.seen[-1][0] and "Bearer ****" in said and hidden(said, value)
    assert f"Host: {HOST}:{PORT}\r\n" in curl(api, box, "http://other.warren/raw")
    assert api.exec(box, "getent ahosts nobody.warren")["exit_code"] != 0
    assert "192.0.2.80" in api.out(box, "getent ahosts echo.warren")
    refused = json.loads(curl(api, box, "http://echo.warren/v1/raw", "-H", "Host: nobody.warren"))
    assert refused["error"]["code"] == "binding_unknown"


# -- programs

PYTHON = """
import json, urllib.request
print(json.dumps([urllib.request.urlopen("https://%s/v1/raw").read().decode(), urllib.request.urlopen("http://echo.warren/v1/json").read().decode()]))
"""
NODE = """
const get = async (u, o) => (await fetch(u, o)).text();
(async () => console.log(JSON.stringify([await get("https://%s/v1/raw"), await get("https://%s/v1/sum", {method: "POST", body: "x".repeat(100000)}),
    await get("http://echo.warren/v1/chunks")])))();
"""


def test_python_and_node_need_no_setting(api, box, value):
    for argv in (["python3", "-c", PYTHON % HOST], ["node", "-e", NODE % (HOST, HOST)]):
        said = api.out(box, argv)
        assert len(json.loads(said)) >= 2 and "Bearer ****" in said and hidden(said, value)


def test_git_clones_and_pushes_with_a_password_it_does_not_know(api, box, world):
    script = ("export GIT_TERMINAL_PROMPT=0; cd $(mktemp -d) && git clone -q https://git.good.test/private.git w && cd w && cat README && "
              "echo more > more && git add more && git -c user.name=a -c user.email=a@good.test commit -qm more && git push -q origin HEAD:bound")
    assert api.out(box, script, timeout=120) == "hello from git\n"
    assert subprocess.run(["git", "-C", world.dir / "git/repo.git", "rev-parse", "bound"], capture_output=True).returncode == 0
    reply = curl(api, box, "https://git.good.test/private.git/HEAD", "-i")
    assert " 403 " in reply and "network_denied" in reply, "only what git asks for is let through"


def test_much_passes_in_both_directions(api, box, world, echo, value):
    assert curl(api, box, "https://good.test/files/big", "-o", "/tmp/big", "-w", "%{size_download}") == str(8 << 20)
    assert api.out(box, "sha256sum < /tmp/big").split()[0] == hashlib.sha256((world.dir / "files/big").read_bytes()).hexdigest()
    curl(api, box, "https://good.test/up/bound", "--fail", "-T", "/tmp/big", "-o", "/dev/null")
    assert (world.dir / "up/bound").read_bytes() == (world.dir / "files/big").read_bytes()
    api.out(box, "curl -sS --fail -H 'Transfer-Encoding: chunked' -T - https://good.test/up/chunked -o /dev/null < /tmp/big")
    assert (world.dir / "up/chunked").stat().st_size == 8 << 20
    # Whose socket it is, a busy machine may not find out in time: the program is then unknown.
    until(lambda: [e for e in entries(api, box) if e["name"] == "good.test" and e["sent_bytes"] > 8 << 20 and e["binding"] == "b-key"
                   and (e["program"] or "curl").endswith("curl")], "its entry")
    until(lambda: [h for h in api.ok("GET", f"/v1/sandboxes/{box}/network/usage")["hosts"]
                   if h["host"] == "good.test" and h["sent_bytes"] > 16 << 20 and h["received_bytes"] > 8 << 20], "its account")


def test_events_come_as_they_are_sent(api, box, echo, value):
    """The second is only sent when the first was seen."""
    script = ("import urllib.request as u\nr = u.urlopen('https://%s/v1/events')\nfirst = r.readline() + r.readline()\n"
              "u.urlopen('http://echo.warren/v1/go').read()\nprint(first, r.read())") % HOST
    said = api.out(box, ["python3", "-c", script], timeout=120)
    assert "data: one" in said and "data: two Bearer ****" in said and hidden(said, value)


WEBSOCKET = r"""
import base64, os, socket, ssl, sys
s = socket.create_connection((sys.argv[1], 443))
s = ssl.create_default_context().wrap_socket(s, server_hostname=sys.argv[1])
s.sendall(b"GET /v1/ws HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
          b"Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Key: %s\r\n\r\n" % (sys.argv[1].encode(), base64.b64encode(os.urandom(16))))
f = s.makefile("rb")
while (line := f.readline()) != b"\r\n":
    print(line.decode().strip())
def message():
    got = b""
    while True:
        first, n = f.read(2)
        got += f.read(n)
        if first & 0x80:
            return got.decode()
print(message())
mask = os.urandom(4)
s.sendall(bytes([0x81, 0x80 | 4]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(b"oops")))
print(message())
"""


def test_a_websocket_is_looked_through_too(api, box, echo, value):
    """Over the border of frames; and a message ends where it ends, though its last letter is the secret's first."""
    said = api.out(box, ["python3", "-c", WEBSOCKET, HOST])
    assert said.startswith("HTTP/1.1 101 ") and "Bearer ****" in said and said.endswith("oops\n") and hidden(said, value), said
    assert "deflate" not in said and "deflate" not in echo.seen[-1][0]
    assert f"Authorization: Bearer {value}" in echo.seen[-1][0]


# -- signatures

def signature(head, body, secret, service):
    """AWS's recipe, followed by the other side."""
    method, target = head.split(" ")[:2]
    path, _, query = target.partition("?")
    fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)}
    scope, names = re.search(r"Credential=AKIDEXAMPLE/([^,]*), SignedHeaders=([^,]*),", fields["authorization"]).groups()
    payload = fields.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()
    canonical = "\n".join([method, path, "&".join(sorted(query.split("&"))), *(f"{n}:{fields[n]}" for n in names.split(";")), "", names, payload])
    text = "\n".join(["AWS4-HMAC-SHA256", fields["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def test_requests_are_signed_for_aws(api, box, echo):
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    curl(api, box, f"https://{HOST}/aws/sum?b=2&a=1", "-d", "x" * 3000, "-H", "X-Amz-Target: Do.It", "-H", "Authorization: AWS4-HMAC-SHA256 mine")
    head, body = echo.seen[-1]
    assert body == b"x" * 3000 and "mine" not in head and "x-amz-target" in re.search("SignedHeaders=([^,]*)", head)[1]
    assert f"Signature={signature(head, body, secret, 'lambda')}\r\n" in head
    api.out(box, f"head -c 3000000 /dev/zero | curl -sS -T - -o /dev/null https://{HOST}/s3/sum")
    head, body = echo.seen[-1]
    assert len(body) == 3000000 and "UNSIGNED-PAYLOAD" in head and f"Signature={signature(head, body, secret, 's3')}\r\n" in head
    api.out(box, "head -c 5000000 /dev/zero > /tmp/large")
    assert json.loads(curl(api, box, f"https://{HOST}/aws/sum", "--data-binary", "@/tmp/large"))["error"]["code"] == "binding_body_too_large"


# -- what is refused

def test_what_no_binding_fits_does_not_go_out(api, box, echo, value):
    before = len(echo.seen)
    for url, args in ((f"https://{HOST}/v2/raw", []), (f"https://{HOST}/v1/raw", ["-X", "DELETE"]), (f"https://{HOST}/v1/../v2/raw", ["--path-as-is"]),
                      (f"https://{HOST}/v1/%2e%2e/v2/raw", ["--path-as-is"]), (f"https://{HOST}/v1%2fraw", []), ("http://echo.warren/v2/raw", []),
                      ("http://echo.warren/key/raw", [])):
        assert json.loads(curl(api, box, url, *args))["error"]["code"] == "network_denied", url
    assert len(echo.seen) == before
    until(lambda: [e for e in entries(api, box) if e["name"] == HOST and e["verdict"] != "allowed"], "an entry of a refusal")
    assert "network_denied" in curl(api, box, f"http://{HOST}/v1/raw"), "no way down to plain HTTP"
    assert len(echo.seen) == before


RAW = r"""
import json, socket, ssl, sys
out = []
for text in json.loads(sys.argv[2]):
    s = ssl.create_default_context().wrap_socket(socket.create_connection((sys.argv[1], 443)), server_hostname=sys.argv[1])
    s.settimeout(60)
    s.sendall(text.encode())
    got = b""
    try:
        while piece := s.recv(65536):
            got += piece
    except OSError as e:
        got += repr(e).encode()
    out.append(got.decode(errors="replace"))
print(json.dumps(out))
"""


def test_what_could_smuggle_or_deceive_is_not_sent_on(api, box, echo, value):
    before = len(echo.seen)
    asks = [
        f"TRACE /v1/raw HTTP/1.1\r\nHost: {HOST}\r\n\r\n",
        f"POST /v1/sum HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        f"POST /v1/sum HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        f"GET /v1/raw HTTP/1.1\r\nHost: {HOST}\r\nX: a\r\n b\r\n\r\n",
        f"GET /v1/raw HTTP/1.1\nHost: {HOST}\n\n",
        "GET /v1/raw HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        f"GET /v1/raw HTTP/1.1\r\nHost: {HOST}\r\nHost: evil.test\r\n\r\n",
        f"GET https://evil.test/v1/raw HTTP/1.1\r\nHost: {HOST}\r\n\r\n",
        f"CONNECT evil.test:443 HTTP/1.1\r\nHost: {HOST}\r\n\r\n",
        f"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]
    answers = json.loads(api.out(box, ["python3", "-c", RAW, HOST, json.dumps(asks)], timeout=120))
    assert [int(a.split()[1]) for a in answers] == [405, 400, 400, 400, 400, 421, 400, 400, 400, 400], answers
    assert len(echo.seen) == before
    # A body that looks like a request is a body, and one that follows is judged like the first.
    inner = f"GET /v2/raw HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
    two = [f"POST /v1/sum HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(inner)}\r\n\r\n{inner}{inner}"]
    answer = json.loads(api.out(box, ["python3", "-c", RAW, HOST, json.dumps(two)]))[0]
    assert re.findall(r"HTTP/1.1 (\d+)", answer) == ["200", "403"] and len(echo.seen) == before + 1 and echo.seen[-1][1].decode() == inner
    # HTTP/1.0, with and without a Host.
    old = ["GET /v1/chunks HTTP/1.0\r\n\r\n", f"GET /v1/raw HTTP/1.0\r\nHost: {HOST}\r\n\r\n"]
    for answer in json.loads(api.out(box, ["python3", "-c", RAW, HOST, json.dumps(old)])):
        assert "Bearer ****" in answer and "chunked" not in answer and hidden(answer, value)


def test_headers_that_change_a_request_or_hide_its_answer_stay_behind(api, box, echo):
    curl(api, box, f"https://{HOST}/v1/raw", "-H", "X-HTTP-Method-Override: DELETE", "-H", "X_HTTP_Method_Override: DELETE", "-H", "X-Original-URL: /v2", "-H", "Range: bytes=3-5", "--compressed",
         "-H", "Connection: close, Authorization", "-H", "Upgrade: h2c")
    head = echo.seen[-1][0]
    assert not re.search(r"(?im)^(x.http|x-orig|range|upgrade)", head) and "gzip" not in head and "Authorization: Bearer" in head


def test_an_encoded_answer_and_a_redirect_give_nothing_away(api, box, echo, value):
    assert json.loads(curl(api, box, f"https://{HOST}/v1/gzip"))["error"]["code"] == "binding_encoded_answer"
    said = curl(api, box, f"https://{HOST}/v1/redirect", "-i")
    assert " 302 " in said and "Location: https://evil.test/?k=Bearer" in said and "***" in said and hidden(said, value)
    assert api.exec(box, f"curl -sSL --max-time 60 https://{HOST}/v1/redirect")["exit_code"] != 0


def test_who_guesses_is_not_told_how_far_it_is_right(api, box, echo, value):
    """A server that says back what it hears: the right beginning of a value looks as a wrong one does."""
    half = len(value) // 2
    for right in (value[:half], "".join(f"&#x{ord(c):04x};" for c in value[:3]), base64.b64encode(value.encode()[:half // 3 * 3]).decode()):
        for guess in (right, right[:-1] + "~"):
            said = curl(api, box, f"https://{HOST}/v1/back", "-D", "-", "-H", f"X-Request-Id: {guess}", "--data-binary", guess)
            assert said.endswith(f"\r\n\r\n{guess}") and f"X-Request-Id: {guess}\r\n" in said, (guess, said)
    assert value in echo.seen[-1][0]


def test_a_body_that_nobody_reads_swallows_no_secret(api, box, echo, value):
    """A server that reads on where an unread body begins would take the next head for a part of what stands there."""
    script = """
import http.client
c = http.client.HTTPSConnection("%s", timeout=60)
for body in b"POST /v1/store HTTP/1.1\\r\\nContent-Length: 100\\r\\n\\r\\n", None, None:
    c.request("GET", "/v1/lazy", body)
    print(c.getresponse().read().decode())
""" % HOST
    before = len(echo.seen)
    assert api.out(box, ["python3", "-c", script]).split() == ["ok"] * 3
    seen = echo.seen[before:]
    assert len([head for head, _ in seen if value in head]) == 3 and not [body for _, body in seen if value.encode() in body], seen


def test_another_servers_certificate_is_told_nothing(api, box, echo):
    before = len(echo.seen)
    for url in ("http://wrong.warren/raw", f"https://{HOST}:{WRONG_PORT}/raw"):
        assert json.loads(curl(api, box, url))["error"]["code"] == "binding_certificate"
    assert len(echo.seen) == before


def test_what_a_server_kept_is_hidden_where_nothing_is_bound(api, box, echo, value):
    """Rules let the host be reached as well: what no binding fits goes bare, and its answers are looked through all the same."""
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"network": {"rules": [f"allow {HOST}", "allow good.test"]}})
    try:
        curl(api, box, f"https://{HOST}/v1/store")
        said = curl(api, box, f"https://{HOST}/v2/stored", "-H", "Authorization: mine")
        assert "Authorization: mine" in echo.seen[-1][0] and value in echo.stored and "***" in said and hidden(said, value)
        until(lambda: [e for e in entries(api, box) if e["name"] == HOST and e["verdict"] == "allowed" and not e.get("binding")], "an entry")
    finally:
        api.ok("PATCH", f"/v1/sandboxes/{box}", {"network": "none"})


# -- time passes

def test_a_new_value_is_carried_at_once_and_a_removed_binding_no_more(api, box, echo, value):
    fresh = "fresh-" + uuid.uuid4().hex
    api.ok("PATCH", "/v1/secrets/b-key", {"value": fresh})
    try:
        said = until(lambda: (s := curl(api, box, f"https://{HOST}/v1/raw")) and fresh in echo.seen[-1][0] and s, "the new value")
        assert fresh not in said
    finally:
        api.ok("PATCH", "/v1/secrets/b-key", {"value": value})
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"bindings": []})
    assert api.exec(box, f"curl -sS --max-time 60 https://{HOST}/v1/raw")["exit_code"] != 0
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"bindings": BINDINGS})
    assert "Bearer ****" in curl(api, box, f"https://{HOST}/v1/raw")


def test_it_works_again_when_the_broker_does(api, box, echo, net, value):
    old = net.pids("warren-broker")
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    until(lambda: "Bearer ****" in api.exec(box, f"curl -sS --max-time 60 https://{HOST}/v1/raw")["stdout"], "an answer", 60)
    assert set(net.pids("warren-broker")) != set(old) and value in echo.seen[-1][0]


def test_the_value_is_nowhere_inside_nor_in_what_is_told(api, box, net, value):
    needle = value.split("/")[1].split("+")[0]
    found = api.exec(box, f"grep -rlsF {shlex.quote(needle)} /etc /home /tmp /var /usr/local /run /proc/self/environ /proc/1/environ; env | grep -F {needle}",
                     user="root", timeout=120)
    assert found["stdout"] == ""
    for path in (f"/v1/sandboxes/{box}", f"/v1/sandboxes/{box}/network/log", "/v1/events?limit=1000", "/v1/logs"):
        assert needle not in api.call("GET", path).body.decode(errors="replace"), path
