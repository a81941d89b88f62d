"""E2B's interface when it is lied to, cut off and trespassed upon: raw bytes, wrong tokens, others' sandboxes."""
import base64
import contextlib
import hashlib
import http.client
import json
import socket
import struct
import threading
import time
import urllib.parse

import pytest

from envd_kit import Envd, b64, e2b, envd, envelope, envelopes, made, put, running  # noqa: F401 (fixtures)
from harness import DEADLINE, until

START = "process.Process/Start"


def error_of(reply):
    """The code that a stream's last envelope tells."""
    assert reply.status == 200, reply
    flags, end = envelopes(reply.body)[-1]
    assert flags == 2
    return json.loads(end).get("error", {}).get("code")


# ---- messages ----

HEAD = b"\0\0\0\0"


@pytest.mark.parametrize("body", [
    b"", b"\0", HEAD, HEAD + b"\x02", HEAD + b"\x02{", HEAD + b"\x02{}x", b"\0\xff\xff\xff\xff{}", b"\0\x7f\xff\xff\xff",
    envelope({"process": {"cmd": "/bin/true"}}, flags=1), envelope({"process": {"cmd": "/bin/true"}}, flags=2),
    envelope({"process": {"cmd": "/bin/true"}}, flags=0xff), envelope({"process": {"cmd": "/bin/true"}}) * 2,
    envelope(b""), envelope(b"null"), envelope(b"[]"), envelope(b'{"process":'), envelope(b"\xff\xfe"), envelope({}),
    envelope({"process": {}}), envelope({"process": {"cmd": ""}}), envelope({"process": {"cmd": 5}}),
    envelope({"process": {"cmd": "/bin/true", "args": "x"}}), envelope({"process": {"cmd": "/bin/true", "args": [1]}}),
    envelope({"process": {"cmd": "/bin/true", "envs": ["x"]}}), envelope({"process": [1]}),
    envelope(b"[" * 100000), envelope(b'{"process":' * 50000),
    envelope({"process": {"cmd": "/bin/no-such-program"}}), envelope({"process": {"cmd": "/etc/passwd"}}),
    envelope({"process": {"cmd": "/bin/true", "cwd": "/no/such/dir"}}),
    envelope({"process": {"cmd": "/bin/true", "cwd": "/etc/passwd"}}),
], ids=range(31))
def test_a_start_that_is_none_is_told_as_one(envd, body):
    assert error_of(envd.raw_stream(START, body)) == "invalid_argument"


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b"\xff", b'{"path":5}', b'{"path":null,"path":{}}', b'{"path":["x"]}'])
def test_a_unary_call_that_is_none_is_told_as_one(envd, body):
    r = envd.call("POST", "/filesystem.Filesystem/Stat", body, {"Content-Type": "application/json"})
    assert (r.status, r.json["code"]) == (400, "invalid_argument"), r


@pytest.mark.parametrize("kind", ["text/plain", "application/grpc", "application/connect+json", "", "application/jsonx"])
def test_another_content_type_is_refused(envd, kind):
    r = envd.call("POST", "/filesystem.Filesystem/Stat", b'{"path":"/"}', {"Content-Type": kind})
    assert (r.status, r.json["code"]) == (400, "invalid_argument"), r
    assert error_of(envd.call("POST", f"/{START}", envelope(envd.start("true")), {"Content-Type": "application/json"})) \
        == "invalid_argument"


def test_what_is_not_known_of_a_message_is_passed_over(envd):
    r = envd.rpc("filesystem.Filesystem/Stat", {"path": "/etc", "no_such_member": {"a": [1]}})
    assert r.status == 200 and r.json["entry"]["type"] == "FILE_TYPE_DIRECTORY"


@pytest.mark.parametrize("path", ["~root", "~nobody-here/x", "a\0b", "/" + "x" * 300, "/" + "x/" * 3000], ids=range(5))
def test_paths_that_are_none(envd, path):
    r = envd.rpc("filesystem.Filesystem/Stat", {"path": path})
    assert r.status in (400, 404) and r.json["code"] in ("invalid_argument", "not_found"), r


def test_numbers_out_of_their_range(envd):
    for pid in (-1, 2**32, 1.5, "x", 2**70):
        r = envd.rpc("process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
        assert (r.status, r.json["code"]) == (400, "invalid_argument"), (pid, r)
    for signal in ("SIGNAL_SIGHUP", 2, "", None, 99):
        r = envd.rpc("process.Process/SendSignal", {"process": {"pid": running(envd, "sleep 9")}, "signal": signal})
        assert (r.status, r.json["code"]) in ((400, "invalid_argument"), (501, "unimplemented")), (signal, r)
    assert envd.rpc("process.Process/List", {}).status == 200


def test_timeouts_that_are_none(envd):
    for text in ("x", "-1", "1x", "", "99999999999999999999"):
        assert error_of(envd.raw_stream(START, envelope(envd.start("true")), {"Connect-Timeout-Ms": text})) \
            in (("invalid_argument",) if text else ("invalid_argument", None)), text


# ---- binary ----

def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    """{number: last value} of a message whose fields are numbers and bytes."""
    found = {}
    while data:
        def number():
            nonlocal data
            n = shift = 0
            while True:
                b, data = data[0], data[1:]
                n |= (b & 127) << shift
                shift += 7
                if b < 128:
                    return n
        key = number()
        value = number()
        if key & 7 == 2:
            value, data = data[:value], data[value:]
        found[key >> 3] = value
    return found


def test_binary_messages_say_the_same(envd):
    config = field(1, b"/bin/sh") + field(2, b"-c") + field(2, b"echo binary; exit 3")
    r = envd.call("POST", f"/{START}", envelope(field(1, config)), {"Content-Type": "application/connect+proto"})
    assert r.headers["Content-Type"] == "application/connect+proto"
    got = envelopes(r.body)
    assert got[-1] == (2, b"{}")  # the end is JSON in either coding
    events = [fields(fields(m)[1]) for flags, m in got if flags == 0]
    assert fields(events[0][1])[1] > 0
    assert fields(events[1][2])[1] == b"binary\n"
    assert fields(events[-1][3])[1] == 6  # sint32 3
    stat = envd.call("POST", "/filesystem.Filesystem/Stat", field(1, b"/etc"), {"Content-Type": "application/proto"})
    entry = fields(fields(stat.body)[1])
    assert (stat.status, entry[1], entry[2], entry[3]) == (200, b"etc", 2, b"/etc")


@pytest.mark.parametrize("body", [
    b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05ab", b"\x08\x01", b"\x0b\x0c", field(1, b"\xff" * 10)[:-1], b"\x80" * 20])
def test_bytes_that_are_no_message_are_refused(envd, body):
    r = envd.call("POST", "/filesystem.Filesystem/Stat", body, {"Content-Type": "application/proto"})
    assert r.status in (400, 404) and r.json["code"] in ("invalid_argument", "not_found"), r
    s = envd.call("POST", f"/{START}", envelope(body), {"Content-Type": "application/connect+proto"})
    assert error_of(s) == "invalid_argument"


# ---- streams that are silent, cut, or come back ----

def test_a_silent_command_is_kept_alive(envd):
    connection, events = envd.open(START, envelope(envd.start("sleep 30; echo never", stdin=False)), {"Keepalive-Ping-Interval": "1"})
    with contextlib.closing(connection):
        assert "start" in next(events)[1]["event"]
        for _ in range(2):
            assert next(events)[1]["event"] == {"keepalive": {}}
    watch, told = envd.open("filesystem.Filesystem/WatchDir", envelope({"path": "/tmp"}), {"Keepalive-Ping-Interval": "1"})
    with contextlib.closing(watch):
        assert next(told)[1] == {"start": {}}
        until(lambda: next(told)[1] == {"keepalive": {}}, "a sign of life")


def test_a_sandbox_killed_under_its_streams_cuts_them(e2b, daemon):
    made = e2b("POST", "/v2/sandboxes", {"templateID": "base"}).json
    inside = Envd(daemon, made)
    streams = [inside.open(START, envelope(inside.start("sleep 60", stdin=False))),
               inside.open("filesystem.Filesystem/WatchDir", envelope({"path": "/tmp"}))]
    for _, events in streams:
        next(events)
    assert e2b("DELETE", f"/sandboxes/{made['sandboxID']}").status == 204
    for connection, events in streams:
        with contextlib.closing(connection), pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while True:
                flags, message = next(events)
                assert flags != 2, "a stream whose sandbox is gone must not seem to end well"
    for r in (inside.call("GET", "/health"), inside.rpc("process.Process/List"), inside.raw_stream(START, envelope({})),
              inside.call("GET", "/files?path=x"), put(inside, "x", b"y"), inside.call("GET", "/envs"),
              inside.raw_stream("process.Process/StreamInput", b""), inside.call("POST", "/files/compose", {})):
        assert (r.status, r.json) == (502, {"sandboxId": inside.id, "message": "The sandbox was not found", "code": 502})


def test_a_command_outlives_its_client_and_its_output_waits(envd):
    pid = running(envd, "sleep 0.2; echo one; sleep 0.2; echo two")
    events = envd.stream("process.Process/Connect", {"process": {"pid": pid}})
    assert events[0] == {"event": {"start": {"pid": pid}}}
    out = b"".join(base64.b64decode(e["event"]["data"]["stdout"]) for e in events if "data" in e.get("event", {}))
    assert out == b"one\ntwo\n"
    again = envd.stream("process.Process/Connect", {"process": {"pid": pid}})
    assert again[-2]["event"]["end"] == {"exited": True, "status": "exit status 0"} and again[-1] == {}


def test_a_time_limit_ends_the_command_and_all_of_it(envd):
    got = envd.raw_stream(START, envelope(envd.start("echo $$ > /tmp/limited; sleep 60 & sleep 60")), {"Connect-Timeout-Ms": "300"})
    assert error_of(got) == "deadline_exceeded"
    left = envd.stream(START, envd.start("pgrep -g $(cat /tmp/limited) || echo none", stdin=False))
    assert b64(b"none\n") in json.dumps(left)


def test_tags_find_a_process(envd):
    pid = running(envd, "sleep 60", tag="mine")
    listed = {p["pid"]: p.get("tag") for p in envd.rpc("process.Process/List").json["processes"]}
    assert listed[pid] == "mine"
    assert envd.rpc("process.Process/SendSignal", {"process": {"tag": "mine"}, "signal": "SIGNAL_SIGKILL"}).status == 200
    gone = envd.rpc("process.Process/SendSignal", {"process": {"tag": "other"}, "signal": 9})
    assert (gone.status, gone.json["code"]) == (404, "not_found")


def test_input_of_the_wrong_kind(envd):
    plain, closed = running(envd, "sleep 60"), running(envd, "sleep 60", stdin=False)
    terminal = running(envd, "sleep 60", pty={"size": {"cols": 80, "rows": 24}})
    for pid, given in ((plain, "pty"), (terminal, "stdin"), (closed, "stdin")):
        r = envd.rpc("process.Process/SendInput", {"process": {"pid": pid}, "input": {given: b64(b"x")}})
        assert (r.status, r.json["code"]) == (500, "internal"), (given, r)
    r = envd.rpc("process.Process/Update", {"process": {"pid": plain}, "pty": {"size": {"cols": 1, "rows": 1}}})
    assert r.status >= 400, r
    assert envd.rpc("process.Process/SendInput", {"process": {"pid": plain}, "input": {"stdin": "not base64!"}}).status == 400
    for pid in (plain, closed, terminal):
        envd.rpc("process.Process/SendSignal", {"process": {"pid": pid}, "signal": 9})


def raw(daemon, data, shut=False):
    """What a connection answers to these bytes, to its end."""
    where = urllib.parse.urlsplit(daemon.url)
    with socket.create_connection((where.hostname, where.port), timeout=DEADLINE) as s:
        s.sendall(data)
        if shut:
            s.shutdown(socket.SHUT_WR)
        got = b""
        with contextlib.suppress(ConnectionError):
            while piece := s.recv(65536):
                got += piece
        return got


def test_bodies_that_end_early_do_no_harm(envd, daemon):
    who = "".join(f"{k}: {v}\r\n" for k, v in envd.headers().items())
    for path, kind, length, body in (
            (START, "application/connect+json", 500, envelope(envd.start("touch /tmp/cut"))[:-3]),
            ("process.Process/StreamInput", "application/connect+json", 500, b"\0\0\0\1\0{"),
            ("files?path=/tmp/cut", "application/octet-stream", 500, b"half"),
            ("files?path=/tmp/cut", "multipart/form-data; boundary=b", 500,
             b'--b\r\nContent-Disposition: form-data; name="file"; filename="cut"\r\n\r\nhalf')):
        raw(daemon, f"POST /e2b/{path} HTTP/1.1\r\nHost: x\r\n{who}Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
            .encode() + body, shut=True)
    chunked = f"POST /e2b/files?path=/tmp/cut HTTP/1.1\r\nHost: x\r\n{who}Content-Type: application/octet-stream\r\n" \
              "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n"
    raw(daemon, chunked.encode(), shut=True)
    assert envd.rpc("filesystem.Filesystem/Stat", {"path": "/tmp/cut"}).status == 404
    assert envd.call("GET", "/health").status == 204


# ---- who may ----

def test_no_token_and_wrong_tokens_open_nothing(envd, e2b, daemon):
    other = e2b("POST", "/v2/sandboxes", {"templateID": "base"}).json
    try:
        for token in (None, "", "x", envd.token[:-1], envd.token + "0", envd.token.upper(), other["envdAccessToken"], daemon.key):
            h = {"X-Access-Token": token}
            for r in (envd.rpc("process.Process/List", headers=h), envd.call("GET", "/envs", headers=h),
                      envd.call("GET", "/metrics", headers=h), envd.call("POST", "/files/compose", {}, headers=h),
                      envd.raw_stream(START, envelope(envd.start("true")), h),
                      envd.raw_stream("process.Process/StreamInput", b"", h),
                      envd.call("GET", "/files?path=/etc/passwd", headers=h), put(envd, "x", b"y", **h)):
                assert (r.status, r.json["code"]) == (401, 401), (token, r)
    finally:
        e2b("DELETE", f"/sandboxes/{other['sandboxID']}")


def signed(envd, path, op="read", user="", expires=None, token=None):
    text = f"{path}:{op}:{user}:{token or envd.token}" + (f":{expires}" if expires is not None else "")
    signature = "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    query = {"path": path, "signature": signature}
    if user:
        query["username"] = user
    if expires is not None:
        query["signature_expiration"] = str(expires)
    return urllib.parse.urlencode(query)


def test_signatures_are_for_one_file_one_way_and_one_user(envd, api):
    put(envd, "s.txt", b"signed")
    bare = api.with_key(None)

    def get(query):
        return bare.call("GET", f"/files?{query}")
    now = int(time.time())
    assert get(signed(envd, "s.txt")).body == b"signed"
    assert get(signed(envd, "/home/user/s.txt", user="root", expires=now + 600)).body == b"signed"
    right = signed(envd, "s.txt", expires=now + 600)
    for wrong in ("path=s.txt", "path=s.txt&signature=", "path=s.txt&signature=v1_", "path=s.txt&signature=" + "A" * 5000,
                  right.replace("s.txt", "t.txt"), right + "&username=root", right.replace(str(now + 600), str(now + 6000)),
                  signed(envd, "s.txt", op="write"), signed(envd, "s.txt", expires=now - 5), signed(envd, "s.txt", expires="x"),
                  signed(envd, "s.txt", token="0" * 64)):
        assert get(wrong).status == 401, wrong
    up = bare.call("POST", f"/files?{signed(envd, 's.txt')}", b"x", {"Content-Type": "application/octet-stream"})
    assert up.status == 401
    named = bare.call("GET", f"/files?{signed(envd, 's.txt')}", headers={"E2b-Sandbox-Id": envd.id})
    assert named.body == b"signed"  # and nobody else's has to be looked at
    assert bare.call("GET", f"/files?{signed(envd, 's.txt')}", headers={"E2b-Sandbox-Id": "x"}).status == 401
    # A wrong token is not made good by a right signature.
    assert envd.call("GET", f"/files?{signed(envd, 's.txt')}", headers={"X-Access-Token": "wrong"}).status == 401


def test_a_flood_of_links_that_name_no_sandbox_leaves_others_alone(envd, api):
    """Real clients send such links, so they are looked up, and that has a budget."""
    put(envd, "s.txt", b"signed")
    forged = "/files?" + urllib.parse.urlencode({"path": "p" * 3000, "signature": "v1_" + "A" * 43})
    over, seen = threading.Event(), []

    def flood():
        while not over.is_set():
            seen.append(api.with_key(None).call("GET", forged).status)
    threads = [threading.Thread(target=flood) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        for _ in range(20):  # the neighbour's
            began = time.monotonic()
            assert envd.call("GET", f"/files?{signed(envd, 's.txt')}").body == b"signed"
            assert api.ok("GET", "/v1/health")
            assert time.monotonic() - began < 3
    finally:
        over.set()
        for t in threads:
            t.join()
    assert len(seen) > 20 and set(seen) <= {401, 429}, set(seen)
    until(lambda: api.with_key(None).call("GET", f"/files?{signed(envd, 's.txt')}").body == b"signed", "the budget")


def test_users(envd):
    def basic(text):
        return {"Authorization": "Basic " + b64(text)}
    who = envd.stream(START, envd.start("id -un", stdin=False), basic(b"root:"))
    assert b64(b"root\n") in json.dumps(who)
    for text in (b"nobody-here:", b"x" * 100 + b":", b"a\0b:", b"/etc/passwd:"):
        got = envd.raw_stream(START, envelope(envd.start("true")), basic(text))
        assert got.status == 401 or error_of(got) == "unauthenticated", (text, got)
    assert envd.call("GET", "/files?path=x&username=nobody-here").status == 401
    assert envd.call("GET", "/files?path=x&username=" + "x" * 100).status == 401


@pytest.mark.parametrize("given", ["", "x", "../../etc", "a" * 19, "A" * 20, "a" * 5000, "abcdefghijklmnopqrst"], ids=range(7))
def test_ids_that_name_no_sandbox(envd, given):
    r = envd.rpc("process.Process/List", headers={"E2b-Sandbox-Id": given})
    assert r.status in (400, 502), r


def test_another_teams_sandbox_is_not_there(e2b, made, api):
    api.ok("POST", "/v1/teams", {"name": "strangers", "quotas": {}})
    try:
        key = api.ok("POST", "/v1/keys", {"name": "strangers-key", "team": "strangers"})["key"]
        who = made["sandboxID"]
        for method, path, body in (
                ("GET", f"/sandboxes/{who}", None), ("DELETE", f"/sandboxes/{who}", None),
                ("POST", f"/sandboxes/{who}/timeout", {"timeout": 1}), ("POST", f"/sandboxes/{who}/refreshes", {"duration": 1}),
                ("POST", f"/sandboxes/{who}/connect", {"timeout": 60}), ("POST", f"/v2/sandboxes/{who}/connect", {}),
                ("POST", f"/sandboxes/{who}/pause", {"memory": False}), ("POST", f"/sandboxes/{who}/resume", {}),
                ("POST", f"/sandboxes/{who}/fork", {}), ("POST", f"/sandboxes/{who}/snapshots", {}),
                ("PUT", f"/sandboxes/{who}/network", {"allow_internet_access": False}),
                ("GET", f"/sandboxes/{who}/metrics", None), ("GET", f"/sandboxes/{who}/logs", None),
                ("GET", f"/v2/sandboxes/{who}/logs", None)):
            r = e2b(method, path, body, key=key)
            assert (r.status, r.json["code"]) == (404, 404), (method, path, r)
        assert e2b("GET", f"/sandboxes/metrics?sandbox_ids={who}", key=key).json == {"sandboxes": {}}
        assert e2b("GET", "/v2/sandboxes", key=key).json == []
        assert [t["teamID"] for t in e2b("GET", "/teams", key=key).json] == ["strangers"]
        assert e2b("GET", "/teams/default/metrics", key=key).status == 403
        assert e2b("GET", f"/sandboxes/{who}").json["state"] == "running"
    finally:
        api.call("DELETE", "/v1/teams/strangers")


@pytest.mark.parametrize("key", ["", "x", "e2b_", "e2b_" + "0" * 40, "e2b_" + "0" * 4000], ids=range(5))
def test_wrong_keys_have_the_body_that_clients_read(e2b, key):
    r = e2b("GET", "/v2/sandboxes", key=key)
    assert (r.status, r.json["code"]) == (401, 401) and r.json["message"], r
    assert "json" in r.headers["Content-Type"]


def test_who_is_refused_wakes_nobody(envd, api):
    box = envd.id
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"freeze_after_s": 0.2})
    until(lambda: api.get(box)["state"] == "frozen", "the frost")
    for path, status in (("/process.Process/List", 401), ("/filesystem.Filesystem/Stat", 401)):
        for token in (None, "wrong"):
            assert envd.rpc(path[1:], headers={"X-Access-Token": token}).status == status
    assert envd.call("GET", "/files?path=x&signature=v1_wrong", headers={"X-Access-Token": None}).status == 401
    assert envd.call("GET", "/health", headers={"X-Access-Token": None}).status == 204, "everyone may ask whether it runs"
    assert api.get(box)["state"] == "frozen"
    assert envd.rpc("process.Process/List").status == 200 and api.get(box)["state"] == "running"
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"freeze_after_s": None})


def test_who_is_refused_at_a_port_wakes_nobody(e2b, api):
    made = e2b("POST", "/v2/sandboxes", {"templateID": "base", "network": {"allowPublicTraffic": False}}).json
    box = made["sandboxID"]
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"freeze_after_s": 0.2})
    until(lambda: api.get(box)["state"] == "frozen", "the frost")
    to = {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "3000"}
    for token in ({}, {"E2b-Traffic-Access-Token": "wrong"}):
        assert api.with_key(None).call("GET", "/e2b/", headers={**to, **token}).status == 403
    assert api.get(box)["state"] == "frozen"
    api.with_key(None).call("GET", "/e2b/", headers={**to, "E2b-Traffic-Access-Token": made["trafficAccessToken"]})
    assert api.get(box)["state"] == "running"
    api.delete(box)
