"""Who may reach a sandbox's ports: private ones, keys, tokens and what they carry."""
import base64
import http.cookies
import json
import socket
import ssl

import pytest

import harness
from harness import until
from preview_kit import connect, get, host_of, raw, seen_by, serve, site  # noqa: F401 - a fixture
from test_preview import websocket

REFUSED = (403, 429)  # 429: there were many wrong ones lately, of other tests too
PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def closed(daemon):
    """A private sandbox with a server on port 3000."""
    sandbox = daemon.api.create(preview="private")["id"]
    serve(daemon.api, sandbox, 3000)
    yield sandbox
    daemon.api.call("DELETE", f"/v1/sandboxes/{sandbox}")


def token(daemon, sandbox, **more):
    return daemon.api.ok("POST", f"/v1/sandboxes/{sandbox}/previews/tokens", more)


def by_header(text):
    return {"X-Warren-Preview-Token": text}


def other_team(daemon):
    """A key of a team that has nothing to do with it."""
    daemon.api.call("POST", "/v1/teams", {"name": "passers-by"})
    return daemon.api.ok("POST", "/v1/keys", {"name": "k", "team": "passers-by", "role": "member"})["key"]


def test_a_private_sandbox_asks_who_comes(daemon, closed):
    host = host_of(closed, 3000)
    assert daemon.api.get(closed)["preview"] == "private"
    refused = get(daemon, host)
    assert refused.status == 403 and refused.code == "forbidden"
    page = get(daemon, host, headers=PAGE)
    assert page.status == 403 and b"<h1>" in page.body
    for headers in ({"X-API-Key": harness.KEY}, {"Authorization": f"Bearer {harness.KEY}"}):
        seen = seen_by(get(daemon, host, headers=headers))
        assert "x-api-key" not in seen and "authorization" not in seen
    assert get(daemon, host, headers={"X-API-Key": other_team(daemon)}).status in REFUSED
    assert get(daemon, host, headers={"X-API-Key": "warren_" + "0" * 40}).status in REFUSED
    # What is an application's own is not Warren's to judge, and no way in.
    assert get(daemon, host, headers={"Authorization": "Bearer theirs"}).status == 403


def test_private_and_public_change_while_it_runs(daemon, closed):
    path = f"/v1/sandboxes/{closed}"
    try:
        assert daemon.api.ok("PATCH", path, {"preview": "public"})["preview"] == "public"
        until(lambda: get(daemon, host_of(closed, 3000)).status == 200, "the door to open")
    finally:
        daemon.api.ok("PATCH", path, {"preview": "private"})
    until(lambda: get(daemon, host_of(closed, 3000)).status == 403, "the door to close")
    daemon.api.refused(400, "invalid_field", "PATCH", path, {"preview": "secret"})


def test_a_token_lets_in_and_says_who_it_is(daemon, closed):
    host = host_of(closed, 3000)
    data = {"user": "ann", "name": "Zoë", "odd": "\x7f\r\nX-Evil: 1", "n": [1, {"a": None}]}
    made = token(daemon, closed, port=3000, data=data, expires_s=60)
    assert made["data"] == data and made["port"] == 3000
    seen = seen_by(get(daemon, host, headers=by_header(made["token"])))
    assert json.loads(seen["x-verified-user-data"]) == data
    assert seen["x-verified-user-data"].isascii() and seen["x-verified-user-data"].isprintable()
    assert "x-warren-preview-token" not in seen and "x-evil" not in seen
    # As a bearer's too, which programs find easier to send.
    seen = seen_by(get(daemon, host, headers={"Authorization": f"Bearer {made['token']}"}))
    assert json.loads(seen["x-verified-user-data"]) == data and "authorization" not in seen
    listed = daemon.api.ok("GET", f"/v1/sandboxes/{closed}/previews/tokens")["tokens"]
    assert made["id"] in [t["id"] for t in listed]
    assert not any("token" in t for t in listed), "a token is shown once"


def test_a_token_is_for_its_port_and_sandbox_alone(daemon, closed, site):
    made = token(daemon, closed, port=3001)["token"]
    assert get(daemon, host_of(closed, 3000), headers=by_header(made)).status in REFUSED
    assert get(daemon, host_of(closed, 3001), headers=by_header(made)).code == "port_closed"
    any_port = token(daemon, closed)["token"]
    assert get(daemon, host_of(closed, 3000), headers=by_header(any_port)).status == 200
    foreign = token(daemon, site)["token"]
    assert get(daemon, host_of(closed, 3000), headers=by_header(foreign)).status in REFUSED
    for wrong in (any_port[:-1], any_port + "0", any_port.upper(), "preview_" + "0" * 40, "x"):
        assert get(daemon, host_of(closed, 3000), headers=by_header(wrong)).status in REFUSED


def test_a_token_ends_by_time_and_by_revocation(daemon, closed):
    host = host_of(closed, 3000)
    short = token(daemon, closed, expires_s=1)["token"]
    until(lambda: get(daemon, host, headers=by_header(short)).status in REFUSED, "its time to be over")
    made = token(daemon, closed, data={"a": 1})
    with connect(daemon) as c:  # one connection, which is kept: each request is judged
        def status():
            c.request("GET", "/", headers={"Host": host, **by_header(made["token"])})
            r = c.getresponse()
            r.read()
            return r.status
        assert status() == 200
        at = f"/v1/sandboxes/{closed}/previews/tokens/{made['id']}"
        assert daemon.api.call("DELETE", at).status == 204
        until(lambda: status() in REFUSED, "the revoked token to be refused")
    daemon.api.refused(404, "token_not_found", "DELETE", at)
    daemon.api.with_key(other_team(daemon)).refused(404, "sandbox_not_found", "GET",
                                                    f"/v1/sandboxes/{closed}/previews/tokens")


def cookie_of(reply):
    jar = http.cookies.SimpleCookie(reply.headers["Set-Cookie"])
    (name, morsel), = jar.items()
    return name, morsel


def test_a_browser_is_sent_on_without_the_token(daemon, closed):
    host = host_of(closed, 3000)
    made = token(daemon, closed, port=3000, data={"user": "ann"}, expires_s=600)
    assert made["url"].endswith(f"/?warren_token={made['token']}") and made["url"].startswith("http")
    sent_on = get(daemon, host, f"/a/b?x=1&warren_token={made['token']}&y=2", headers=PAGE)
    assert sent_on.status == 303 and sent_on.headers["Location"] == "/a/b?x=1&y=2"
    assert sent_on.headers["Cache-Control"] == "no-store"
    name, morsel = cookie_of(sent_on)
    assert morsel["httponly"] and morsel["samesite"] == "Lax" and morsel["path"] == "/"
    assert morsel["domain"] == "" and 500 < int(morsel["max-age"]) <= 600
    cookie = {"Cookie": f"a=1; {name}={morsel.value}; b=2"}
    seen = seen_by(get(daemon, host, "/a/b?x=1", headers=PAGE | cookie | {
        "Referer": f"http://{host}/?warren_token={made['token']}&z=3"}))
    assert seen["cookie"] == "a=1; b=2"
    assert seen["referer"] == f"http://{host}/?z=3"
    assert json.loads(seen["x-verified-user-data"]) == {"user": "ann"}
    assert made["token"] not in json.dumps(seen)
    # Nothing is left of the header when ours was the only one.
    assert "cookie" not in seen_by(get(daemon, host, headers={"Cookie": f"{name}={morsel.value}"}))
    # A wrong one is no reason to set anything; and nobody is led elsewhere.
    wrong = get(daemon, host, "/?warren_token=preview_" + "0" * 40, headers=PAGE)
    assert wrong.status in REFUSED and "Set-Cookie" not in wrong.headers
    elsewhere = get(daemon, host, f"//evil.test/?warren_token={made['token']}", headers=PAGE)
    assert elsewhere.headers["Location"] == "/.//evil.test/"


def test_a_cookie_is_no_proof_for_the_pages_of_others(daemon, closed, site):
    """Previews are one site to a browser: a page in one sandbox can make it call another, cookie and all."""
    host = host_of(closed, 3000)
    made = token(daemon, closed, port=3000)["token"]
    name, morsel = cookie_of(get(daemon, host, f"/?warren_token={made}", headers=PAGE))
    cookie = {"Cookie": f"{name}={morsel.value}"}
    upgrade = {"Upgrade": "websocket", "Connection": "upgrade"}
    for origin in (f"http://{host}", f"http://{host_of(closed, 8000)}:{daemon.port}"):
        assert get(daemon, host, "/up", "POST", b"x", cookie | {"Origin": origin}).status == 200
    for origin in (f"http://{host_of(site, 3000)}", "https://evil.test", "null"):
        strange = {"Origin": origin}
        assert get(daemon, host, "/up", "POST", b"x", cookie | strange).status in REFUSED
        assert get(daemon, host, "/ws", headers=cookie | strange | upgrade).status in REFUSED
        # A token that the page itself has is another matter.
        assert get(daemon, host, "/up", "POST", b"x", strange | {"X-Warren-Preview-Token": made}).status == 200


def test_programs_use_a_token_in_the_query_at_once(daemon, closed):
    """What a script opens cannot be sent on: streams of events, uploads, WebSockets."""
    host = host_of(closed, 3000)
    text = token(daemon, closed, data={"u": 1})["token"]
    reply = get(daemon, host, f"/up?warren_token={text}&a=b", "POST", b"body")
    assert reply.json["path"] == "/up?a=b" and reply.json["n"] == 4
    with connect(daemon) as c:
        c.request("GET", f"/chunked?n=2&warren_token={text}", headers={"Host": host, "Accept": "text/event-stream"})
        assert c.getresponse().read() == b"data: 0\n\ndata: 1\n\n"
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.DEADLINE) as s:
        f = websocket(s, host, f"/ws?warren_token={text}", "Origin: http://elsewhere.test\r\n")
        s.sendall(b"hello")
        assert f.read(5) == b"hello"
    assert raw(daemon, f"GET /ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n"
                       "Sec-WebSocket-Key: x\r\n\r\n".encode()).startswith(b"HTTP/1.1 403")


def test_a_public_sandbox_learns_who_comes_too(daemon, site):
    host = host_of(site, 3000)
    made = token(daemon, site, data={"user": "ann"})["token"]
    assert json.loads(seen_by(get(daemon, host, headers=by_header(made)))["x-verified-user-data"]) == {"user": "ann"}
    for spoof in ({"X-Verified-User-Data": "{}"}, {"x-verified-user-data": "{}"},
                  {"X-Verified-User-Data": "{}", "Connection": "X-Verified-User-Data"},
                  {"X_Verified_User_Data": "{}"}, {"X-Verified.User_Data": "{}"},
                  by_header("preview_" + "0" * 40)):
        assert not [name for name in seen_by(get(daemon, host, headers=spoof)) if "verified" in name], spoof
    # Two clients on connections that are kept do not become one another.
    bob = token(daemon, site, data={"user": "bob"})["token"]
    for _ in range(3):
        for text, who in ((made, "ann"), (bob, "bob"), (None, None)):
            seen = seen_by(get(daemon, host, headers=by_header(text) if text else {}))
            assert seen.get("x-verified-user-data") == (json.dumps({"user": who}, separators=(",", ":")) if who else None)


def test_what_spoofs_in_a_trailer_does_not_pass(daemon, site):
    bad = (f"POST / HTTP/1.1\r\nHost: {host_of(site, 3000)}\r\nTransfer-Encoding: chunked\r\nTrailer: X-Verified-User-Data\r\n"
           "\r\n1\r\na\r\n0\r\nX-Verified-User-Data: {}\r\n\r\n")
    assert raw(daemon, bad.encode()).startswith(b"HTTP/1.1 400")


def test_the_way_by_headers_is_no_way_to_spoof(daemon, site):
    """Ports are reached by E2B's headers too: what only we may say is not said there, nor are our credentials shown."""
    way = {"E2b-Sandbox-Id": site, "E2b-Sandbox-Port": "3000"}
    spoofs = {"X-Verified-User-Data": "{}", "X_Verified_User_Data": "{}", "X-Forwarded-For": "spoofed", "X-Warren-Preview-Token": "preview_" + "0" * 40}
    for host in ("warren.test", "api.warren.test", "elsewhere.test"):
        seen = seen_by(get(daemon, host, "/e2b/mine", headers={**way, **spoofs}))
        assert not [n for n in seen if "verified" in n or "x-warren" in n] and "spoofed" not in seen.values(), (host, seen)


def test_what_spoofs_in_a_body_that_nobody_reads_is_no_request(daemon, site):
    """Many a server leaves the body of a request that needs none where it is, and reads on from there."""
    host = host_of(site, 3000)
    spoof = b"GET /told HTTP/1.1\r\nHost: x\r\nX-Verified-User-Data: {}\r\n\r\n"
    for method in ("GET", "POST"):
        before = int(get(daemon, host, "/times-told").body)
        assert get(daemon, host, "/told", method, spoof).body == b"ok"
        assert get(daemon, "warren.test", "/e2b/told", method, spoof, {"E2b-Sandbox-Id": site, "E2b-Sandbox-Port": "3000"}).body == b"ok"
        assert int(get(daemon, host, "/times-told").body) == before + 2
        assert get(daemon, host, "/mine").json["path"] == "/mine"


def test_what_spoofs_in_another_http_does_not_pass(daemon, site):
    """A server that would go on as HTTP/2 is not asked to: nobody would look at what is said there."""
    host = host_of(site, 3000)
    for to in ("h2c", "websocket, h2c", "TLS/1.3, HTTP/1.1"):
        got = raw(daemon, f"GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: {to}\r\nHTTP2-Settings: AAMAAABk\r\n"
                          f"Sec-WebSocket-Key: a\r\n\r\nGET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert b"101 Switching" not in got and b'"upgrade"' not in got, (to, got)


def answer(*lines, body=b"x"):
    text = "\r\n".join(["HTTP/1.1 200 OK", *lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    return "/raw?b64=" + base64.urlsafe_b64encode(text).decode().replace("-", "%2B").replace("_", "%2F")


def test_cookies_of_a_server_stay_with_its_host(daemon, site):
    reply = get(daemon, host_of(site, 3000), answer(
        "Set-Cookie: a=1; Domain=warren.test; Path=/; HttpOnly", "set-cookie: b=2;domain=.test",
        "Set-Cookie: warren_preview=mine", "Set-Cookie: __Host-warren_preview=mine; Secure; Path=/",
        "Set-Cookie: domain=3", 'Clear-Site-Data: "cookies"'))
    assert reply.status == 200, reply
    assert reply.headers.get_all("Set-Cookie") == ["a=1; Path=/; HttpOnly", "b=2", "domain=3"]
    assert "Clear-Site-Data" not in reply.headers


def test_under_tls_the_cookie_is_one_that_no_neighbour_can_set(daemon, closed):
    host = host_of(closed, 3000)
    text = token(daemon, closed)["token"]
    context = ssl.create_default_context(cafile=daemon.cert)

    def ask(path, cookie=""):
        with socket.create_connection(("127.0.0.1", daemon.tls_port), timeout=harness.DEADLINE) as plain, \
                context.wrap_socket(plain, server_hostname=host) as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\n{cookie}\r\n".encode())
            return s.makefile("rb").read().decode()
    got = ask(f"/?warren_token={text}")
    assert got.startswith("HTTP/1.1 303") and f"Set-Cookie: __Host-warren_preview={text}; " in got and "; Secure" in got
    assert ask("/", f"Cookie: __Host-warren_preview={text}\r\n").startswith("HTTP/1.1 200")
    assert ask("/", f"Cookie: warren_preview={text}\r\n").startswith("HTTP/1.1 403")


def test_guessing_is_slowed_and_costs_a_right_token_nothing(daemon, closed):
    host, right = host_of(closed, 3000), by_header(token(daemon, closed)["token"])

    def limited():
        wrong = get(daemon, host, headers=by_header("preview_" + "f" * 40))
        assert wrong.status in REFUSED
        return wrong.status == 429 and wrong.headers["Retry-After"]
    until(limited, "wrong tokens to be limited")
    assert get(daemon, host, headers=right).status == 200
    assert get(daemon, host, headers={"X-API-Key": harness.KEY}).status == 200


def test_tokens_outlive_a_restart_and_go_with_their_sandbox(fresh):
    fresh.api.import_image("base", harness.base_image())
    sandbox = fresh.api.create(preview="private")["id"]
    made = token(fresh, sandbox, data={"a": 1})
    serve(fresh.api, sandbox, 3000)
    fresh.restart()
    host = host_of(sandbox, 3000, "localhost")
    assert seen_by(get(fresh, host, headers=by_header(made["token"])))["x-verified-user-data"] == '{"a":1}'
    fresh.api.delete(sandbox)
    gone = get(fresh, host, headers=by_header(made["token"]))
    assert gone.status == 502 and gone.code == "sandbox_not_found", "a stranger learns nothing of a private one"
    known = get(fresh, host, headers={"X-API-Key": harness.KEY})
    assert known.code == "sandbox_gone" and known.json["error"]["cause"] == "deleted"


def test_the_command_line_makes_tokens(daemon, closed):
    made = daemon.cli("token", "create", "--port", "3000", "--expires", "10m", "--data", '{"u":"ann"}', closed)
    assert made.returncode == 0 and "/?warren_token=preview_" in made.stdout
    text = made.stdout.strip().split("=")[1]
    assert get(daemon, host_of(closed, 3000), headers=by_header(text)).status == 200
    listed = json.loads(daemon.cli("--json", "token", "ls", closed).stdout)
    mine = [t["id"] for t in listed if t["data"] == {"u": "ann"}]
    removed = daemon.cli("--json", "token", "rm", closed, mine[0])
    assert removed.returncode == 0 and removed.stdout == "", "an id alone is not JSON"
    assert daemon.cli("token", "create", "--data", "no json", closed).returncode != 0
    assert mine[0] not in daemon.cli("token", "ls", closed).stdout
