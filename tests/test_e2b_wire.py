"""E2B's interface as it is on the wire: what its own client never sends, sends wrongly, or sends in another coding."""
import base64
import contextlib
import gzip
import json
import socket
import struct
import time

import pytest

from harness import DEADLINE, Reply, until


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

    def raw_stream(self, method, body, headers=None, timeout=DEADLINE * 2):
        return self.call("POST", f"/{method}", body, {"Content-Type": "application/connect+json", **(headers or {})},
                         timeout)

    def start(self, shell, **more):
        return {"process": {"cmd": "/bin/sh", "args": ["-c", shell]}, **more}


def envelope(message, flags=0):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


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


# ---- watchers ----

def test_a_watcher_keeps_what_happened_between_two_calls(envd):
    assert envd.rpc("filesystem.Filesystem/MakeDir", {"path": "kept/sub"}).status == 200
    made = envd.rpc("filesystem.Filesystem/CreateWatcher", {"path": "kept", "recursive": True, "includeEntry": True})
    assert made.status == 200, made
    who = {"watcherId": made.json["watcherId"]}
    assert envd.rpc("filesystem.Filesystem/GetWatcherEvents", who).json.get("events", []) == []
    envd.call("POST", "/files?path=kept/sub/a.txt", b"hello", {"Content-Type": "application/octet-stream"})
    assert envd.rpc("filesystem.Filesystem/Move", {"source": "kept/sub/a.txt", "destination": "kept/b.txt"}).status == 200
    seen = []

    def all_of_it():
        seen.extend(envd.rpc("filesystem.Filesystem/GetWatcherEvents", who).json.get("events", []))
        return any(e["name"] == "b.txt" for e in seen)
    until(all_of_it, "the rename")
    kinds = [(e["type"], e["name"]) for e in seen]
    assert ("EVENT_TYPE_CREATE", "sub/a.txt") in kinds
    at = kinds.index(("EVENT_TYPE_RENAME", "sub/a.txt"))
    assert kinds[at + 1] == ("EVENT_TYPE_CREATE", "b.txt")
    assert seen[at + 1]["entry"]["path"] == "/home/user/kept/b.txt"
    assert "entry" not in seen[at]
    assert envd.rpc("filesystem.Filesystem/RemoveWatcher", who).status == 200
    for method in ("GetWatcherEvents", "RemoveWatcher"):
        gone = envd.rpc(f"filesystem.Filesystem/{method}", who)
        assert (gone.status, gone.json["code"]) == (404, "not_found"), gone


def test_only_directories_are_watched_and_only_our_watchers_are_found(envd, api):
    for path, status, code in (("nope", 404, "not_found"), ("/etc/passwd", 400, "invalid_argument")):
        r = envd.rpc("filesystem.Filesystem/CreateWatcher", {"path": path})
        assert (r.status, r.json["code"]) == (status, code), r
    native = api.ok("POST", f"/v1/sandboxes/{envd.id}/files/watches", {"path": "/tmp"})["watch"]
    for who in (f"w{native}", "w", "w0", "wx", "1", "", "w99999999999999999999999"):
        r = envd.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": who})
        assert (r.status, r.json["code"]) == (404, "not_found"), (who, r)


# ---- what a sandbox tells of itself ----

def test_envs_are_the_sandboxs_and_what_is_ours_cannot_be_said(envd):
    got = envd.call("GET", "/envs")
    assert got.status == 200
    assert got.json["OWN"] == "x"
    assert got.json["E2B_SANDBOX"] == "true" and got.json["E2B_SANDBOX_ID"] == envd.id
    assert got.json["E2B_TEMPLATE_ID"] == "base"
    assert envd.call("GET", "/envs", headers={"X-Access-Token": None}).status == 401


def test_metrics_of_a_sandbox(envd):
    got = envd.call("GET", "/metrics").json
    assert got["cpu_count"] >= 1 and 0 < got["mem_used"] <= got["mem_total"] and got["disk_total"] > 0
    assert abs(got["ts"] - time.time()) < 600
    assert envd.call("GET", "/metrics", headers={"X-Access-Token": "wrong"}).status == 401


# ---- files ----

def put(envd, path, data, **headers):
    return envd.call("POST", f"/files?path={path}", data, {"Content-Type": "application/octet-stream", **headers})


def test_ranges_and_conditions(envd):
    put(envd, "r.txt", b"0123456789")
    whole = envd.call("GET", "/files?path=r.txt")
    assert (whole.status, whole.body, whole.headers["Content-Length"]) == (200, b"0123456789", "10")
    assert whole.headers["Content-Type"].startswith("text/plain")
    for given, body, span in (("bytes=2-4", b"234", "bytes 2-4/10"), ("bytes=7-", b"789", "bytes 7-9/10"),
                              ("bytes=-2", b"89", "bytes 8-9/10"), ("bytes=5-99", b"56789", "bytes 5-9/10")):
        part = envd.call("GET", "/files?path=r.txt", headers={"Range": given})
        assert (part.status, part.body, part.headers["Content-Range"]) == (206, body, span), part
    behind = envd.call("GET", "/files?path=r.txt", headers={"Range": "bytes=10-"})
    assert (behind.status, behind.headers["Content-Range"], behind.json["code"]) == (416, "bytes */10", 416)
    for name, header in (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified")):
        same = envd.call("GET", "/files?path=r.txt", headers={name: whole.headers[header]})
        assert (same.status, same.body) == (304, b""), same
    other = envd.call("GET", "/files?path=r.txt", headers={"Range": "bytes=1-2", "If-Range": '"other"'})
    assert (other.status, other.body) == (200, b"0123456789")


def test_gzip_is_for_those_who_ask_for_nothing_else(envd):
    put(envd, "z.txt", gzip.compress(b"z" * 5000), **{"Content-Encoding": "gzip"})
    coded = envd.call("GET", "/files?path=z.txt", headers={"Accept-Encoding": "gzip"})
    assert coded.headers["Content-Encoding"] == "gzip" and gzip.decompress(coded.body) == b"z" * 5000
    plain = envd.call("GET", "/files?path=z.txt", headers={"Accept-Encoding": "gzip, deflate"})
    assert plain.body == b"z" * 5000
    nothing = envd.call("GET", "/files?path=z.txt", headers={"Accept-Encoding": "br, identity;q=0"})
    assert (nothing.status, nothing.json["code"]) == (406, 406)
    bad = put(envd, "bad.txt", b"no gzip", **{"Content-Encoding": "gzip"})
    assert (bad.status, bad.json["code"]) == (400, 400)
    assert put(envd, "bad.txt", b"x", **{"Content-Encoding": "br"}).status == 400


def test_a_page_out_of_a_sandbox_is_none_of_the_daemons(envd):
    put(envd, "page.html", b"<script>1</script>")
    got = envd.call("GET", "/files?path=page.html")
    assert got.headers["Content-Type"].startswith("text/html")
    assert got.headers["Content-Security-Policy"] == "sandbox"


def test_metadata_replaces_what_there_was(envd):
    written = put(envd, "m.txt", b"1", **{"X-Metadata-Author": "Ann", "X-Metadata-kind": "note"})
    assert written.json[0]["metadata"] == {"author": "Ann", "kind": "note"}
    put(envd, "m.txt", b"2", **{"X-Metadata-kind": "other"})

    def metadata(path="m.txt"):
        return envd.rpc("filesystem.Filesystem/Stat", {"path": path}).json["entry"].get("metadata")
    assert metadata() == {"kind": "other"}
    listed = envd.rpc("filesystem.Filesystem/ListDir", {"path": "."}).json["entries"]
    assert {e["name"]: e.get("metadata") for e in listed}["m.txt"] == {"kind": "other"}
    moved = envd.rpc("filesystem.Filesystem/Move", {"source": "m.txt", "destination": "n.txt"})
    assert moved.json["entry"]["metadata"] == {"kind": "other"}
    put(envd, "n.txt", b"3")
    assert metadata("n.txt") is None
    for headers in ({"X-Metadata-" + "k" * 247: "v"}, {"X-Metadata-k": "v" * 4097}, {"X-Metadata-": "v"}):
        assert put(envd, "m.txt", b"4", **headers).status == 400, headers
    assert envd.rpc("filesystem.Filesystem/Stat", {"path": "m.txt"}).status == 404


def test_compose_puts_files_together(envd):
    for name, data in (("p1", b"one"), ("p2", b"two"), ("p3", b"")):
        put(envd, name, data)
    done = envd.call("POST", "/files/compose", {"source_paths": ["p1", "p2", "p3"], "destination": "whole/all"})
    assert (done.status, done.json["path"]) == (200, "/home/user/whole/all"), done
    assert envd.call("GET", "/files?path=whole/all").body == b"onetwo"
    assert envd.call("GET", "/files?path=p1").status == 404
    put(envd, "p4", b"four")
    kept = envd.call("POST", "/files/compose", {"source_paths": ["whole/all", "p4"], "destination": "whole/all"})
    assert kept.status == 200 and envd.call("GET", "/files?path=whole/all").body == b"onetwofour"
    put(envd, "p5", b"five")
    missing = envd.call("POST", "/files/compose", {"source_paths": ["p5", "nope"], "destination": "whole/all"})
    assert missing.status == 404
    assert envd.call("GET", "/files?path=whole/all").body == b"onetwofour"
    assert envd.call("GET", "/files?path=p5").body == b"five"
    for body in ({}, {"source_paths": [], "destination": "x"}, {"source_paths": [1], "destination": "x"},
                 {"source_paths": ["p5"]}, {"source_paths": "p5", "destination": "x"}):
        assert envd.call("POST", "/files/compose", body).status == 400, body


# ---- input as a stream ----

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


def test_a_process_is_fed_by_a_stream(envd):
    pid = running(envd, "cat; echo end")
    body = envelope({"start": {"process": {"pid": pid}}}) + envelope({"keepalive": {}})
    for piece in (b"hello ", b"wor", b"ld\n"):
        body += envelope({"data": {"input": {"stdin": b64(piece)}}})
    fed = envd.raw_stream("process.Process/StreamInput", body)
    assert [(f, json.loads(m)) for f, m in envelopes(fed.body)] == [(0, {}), (2, {})], fed
    assert envd.rpc("process.Process/CloseStdin", {"process": {"pid": pid}}).status == 200
    events = envd.stream("process.Process/Connect", {"process": {"pid": pid}})
    out = b"".join(base64.b64decode(e["event"]["data"]["stdout"]) for e in events if "data" in e.get("event", {}))
    assert out == b"hello world\nend\n"


@pytest.mark.parametrize("name,body,code", [
    ("nothing", b"", "invalid_argument"),
    ("data first", envelope({"data": {"input": {"stdin": "eA=="}}}), "invalid_argument"),
    ("an unknown process", envelope({"start": {"process": {"pid": 999999}}}), "not_found"),
    ("no event", envelope({}), "invalid_argument"),
    ("no JSON", envelope(b"{"), "invalid_argument"),
    ("compressed", envelope({}, flags=1), "invalid_argument"),
    ("cut in a head", b"\0\0\0", "invalid_argument"),
    ("cut in a message", b"\0\0\0\0\x09{}", "invalid_argument"),
    ("a length that lies", b"\0\xff\xff\xff\xff{}", "invalid_argument"),
], ids=lambda v: v if isinstance(v, str) and " " in v else None)
def test_a_bad_stream_of_input_is_told_at_its_end(envd, name, body, code):
    got = envd.raw_stream("process.Process/StreamInput", body)
    assert got.status == 200, got
    (flags, end), = envelopes(got.body)
    assert flags == 2 and json.loads(end)["error"]["code"] == code, end


# ---- the control plane: what its own client has no method for, or no test of ----

@pytest.fixture
def another(e2b):
    """More sandboxes, with these members; gone after the test."""
    ids = []

    def make_one(path="/v2/sandboxes", **more):
        reply = e2b("POST", path, {"templateID": "base", **more})
        assert reply.status == 201, reply
        ids.append(reply.json["sandboxID"])
        return reply.json
    yield make_one
    for i in ids:
        e2b("DELETE", f"/sandboxes/{i}")


def test_resume_and_what_is_refused_of_a_life(e2b, another):
    who = another()["sandboxID"]
    assert e2b("POST", f"/sandboxes/{who}/resume", {"timeout": 60}).status == 409
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 204
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 409
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "paused"
    resumed = e2b("POST", f"/sandboxes/{who}/resume", {"timeout": 60})
    assert resumed.status == 201 and resumed.json["sandboxID"] == who
    for path in ("fork", "snapshots"):
        r = e2b("POST", f"/sandboxes/{who}/{path}", {})
        assert r.status == 400 and r.json["code"] == 400 and "memory" in r.json["message"], r
        assert e2b("POST", f"/sandboxes/nosuchsandboxatall00/{path}", {}).status == 404
    assert e2b("GET", "/snapshots").json == []
    assert e2b("POST", "/sandboxes/nosuchsandboxatall00/resume", {}).json["code"] == 404


@pytest.mark.parametrize("more", [
    {"autoPauseMemory": False}, {"autoPause": True},
    {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}},
    {"timeout": 0}, {"timeout": "60"}, {"metadata": {"a": 1}}, {"metadata": {"warren.e2b.open": "1"}}, {"envVars": []},
    {"templateID": ""}, {"templateID": 5}])
def test_a_create_that_cannot_be_kept_is_refused(e2b, more):
    r = e2b("POST", "/v2/sandboxes", {"templateID": "base", **more})
    assert r.status == 400 and r.json["code"] == 400 and r.json["message"], r


def test_a_pause_at_the_end_of_a_life(e2b, another, daemon):
    who = another(timeout=1, autoPause=True, autoPauseMemory=False)
    assert e2b("GET", f"/sandboxes/{who['sandboxID']}").json["lifecycle"] == {"onTimeout": "pause", "autoResume": False}
    put(Envd(daemon, who), "kept.txt", b"kept")
    until(lambda: e2b("GET", f"/sandboxes/{who['sandboxID']}").json["state"] == "paused", "the pause")
    assert Envd(daemon, who).call("GET", "/health").status == 502
    assert e2b("POST", f"/v2/sandboxes/{who['sandboxID']}/connect", {"timeout": 60}).status == 201
    assert Envd(daemon, who).call("GET", "/files?path=kept.txt").body == b"kept"


def test_a_touch_resumes_one_that_wants_it(e2b, another, daemon):
    made = another(autoResume={"enabled": True}, timeout=120)
    who, inside = made["sandboxID"], Envd(daemon, made)
    assert e2b("GET", f"/sandboxes/{who}").json["lifecycle"]["autoResume"] is True
    assert "warren.e2b.wakes" not in e2b("GET", f"/sandboxes/{who}").json["metadata"]
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 204
    for stranger in (None, "wrong"):
        assert inside.rpc("process.Process/List", headers={"X-Access-Token": stranger}).status == 502
        assert inside.call("GET", "/files?path=x&signature=v1_x", headers={"X-Access-Token": stranger}).status == 502
    assert inside.call("GET", "/health").status == 502
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "paused"
    assert inside.rpc("process.Process/List").status == 200
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "running"


def test_the_network_can_only_be_closed(e2b, made):
    path = f"/sandboxes/{made['sandboxID']}/network"
    for body in ({"allow_internet_access": False}, {"denyOut": ["0.0.0.0/0"]}):
        assert e2b("PUT", path, body).status == 204
    for body in ({}, {"allowOut": ["1.1.1.1"], "denyOut": ["0.0.0.0/0"]}, {"rules": {"a.b": []}, "allow_internet_access": False},
                 {"egressProxy": {"address": "x:1"}}):
        assert (e2b("PUT", path, body).status, e2b("PUT", path, body).json["code"]) == (400, 400), body


def test_curves_of_what_is_used(e2b, made, envd):
    envd.stream("process.Process/Start", envd.start("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", stdin=False))
    who, now = made["sandboxID"], int(time.time())
    found = e2b("GET", f"/sandboxes/{who}/metrics").json
    assert found and all(set(m) == {"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal",
                                    "memCache", "diskUsed", "diskTotal"} for m in found)
    assert any(m["cpuUsedPct"] > 0 for m in found) and found[-1]["memUsed"] > 0
    assert e2b("GET", f"/sandboxes/{who}/metrics?start={now + 5000}").json == []
    assert e2b("GET", f"/sandboxes/{who}/metrics?end={now - 50000}").json == []
    assert e2b("GET", f"/sandboxes/{who}/metrics?start={now - 50000}&end={now + 50000}").json != []
    assert e2b("GET", f"/sandboxes/{who}/metrics?start=5&end=4").status == 400
    several = e2b("GET", f"/sandboxes/metrics?sandbox_ids={who},nosuchsandboxatall00,x").json["sandboxes"]
    assert list(several) == [who]
    assert e2b("GET", "/sandboxes/metrics").status == 400
    assert e2b("GET", "/sandboxes/metrics?sandbox_ids=" + ",".join("abcd" for _ in range(101))).status == 400


def test_a_teams_curves(e2b, made):
    team, = e2b("GET", "/teams").json
    curve = e2b("GET", f"/teams/{team['teamID']}/metrics").json
    assert curve[-1]["concurrentSandboxes"] >= 1 and any(m["sandboxStartRate"] > 0 for m in curve)
    most = e2b("GET", f"/teams/{team['teamID']}/metrics/max?metric=concurrent_sandboxes").json
    assert most["value"] == max(m["concurrentSandboxes"] for m in curve)
    assert e2b("GET", f"/teams/{team['teamID']}/metrics/max?metric=sandbox_start_rate").json["value"] > 0
    assert e2b("GET", f"/teams/{team['teamID']}/metrics/max").status == 400
    assert e2b("GET", "/teams/another/metrics").status == 403


def test_the_log_has_what_happened_and_what_was_printed(e2b, another, daemon):
    made = another()
    who, inside = made["sandboxID"], Envd(daemon, made)
    inside.stream("process.Process/Start", inside.start("echo first; echo second >&2; exit 3", stdin=False))
    logs = e2b("GET", f"/v2/sandboxes/{who}/logs").json["logs"]
    told = [(m["level"], m["fields"]["source"], m["message"]) for m in logs]
    assert told[0][1:2] == ("sandbox",) and "sandbox.created" in told[0][2]
    assert ("info", "stdout", "first") in told and ("warn", "stderr", "second") in told
    assert ("warn", "process", "ended with 3") in told
    assert [m["timestamp"] for m in logs] == sorted(m["timestamp"] for m in logs)
    back = e2b("GET", f"/v2/sandboxes/{who}/logs?direction=backward&limit=2").json["logs"]
    assert back == logs[::-1][:2]
    assert {m["level"] for m in e2b("GET", f"/v2/sandboxes/{who}/logs?level=warn").json["logs"]} == {"warn"}
    assert [m["message"] for m in e2b("GET", f"/v2/sandboxes/{who}/logs?search=second").json["logs"]
            if m["fields"]["source"] != "process"] == ["second"]
    assert e2b("GET", f"/v2/sandboxes/{who}/logs?cursor={int(time.time() * 1000) + 100000}").json["logs"] == []
    old = e2b("GET", f"/sandboxes/{who}/logs?start=0&limit=1000").json
    assert "first" in [m["line"] for m in old["logs"]] and len(old["logEntries"]) == len(old["logs"])
    for query in ("direction=up", "level=loud", "limit=1001", "cursor=x"):
        assert e2b("GET", f"/v2/sandboxes/{who}/logs?{query}").status == 400, query
    e2b("DELETE", f"/sandboxes/{who}")
    assert "sandbox.deleted" in e2b("GET", f"/v2/sandboxes/{who}/logs").json["logs"][-1]["message"]
    assert e2b("GET", "/v2/sandboxes/nosuchsandboxatall00/logs").status == 404


def test_lists_by_template_and_time(e2b, another):
    first, second = another(metadata={"k 1": "v&2"}), another(metadata={"k 1": "v&2"})
    ids = {first["sandboxID"], second["sandboxID"]}
    mine = "metadata=k%2525201%3Dv%2525262"

    def listed(query):
        r = e2b("GET", f"/v2/sandboxes?{mine}&{query}")
        assert r.status == 200, r
        return [s["sandboxID"] for s in r.json]
    assert set(listed("template=base")) == ids and listed("template=other") == []
    started = e2b("GET", f"/sandboxes/{second['sandboxID']}").json["startedAt"]
    assert listed(f"startedAfter={started}") == [second["sandboxID"]]
    assert listed("startedAfter=2199-01-01T00:00:00Z") == []
    assert listed("order=asc") == listed("order=desc")[::-1]
    assert listed("state=paused") == [] and set(listed("state=running,paused")) == ids
    page = e2b("GET", f"/v2/sandboxes?{mine}&limit=1")
    rest = e2b("GET", f"/v2/sandboxes?{mine}&limit=1&nextToken={page.headers['X-Next-Token']}")
    assert {page.json[0]["sandboxID"], rest.json[0]["sandboxID"]} == ids and not rest.headers["X-Next-Token"]
    for query in ("order=up", "startedAfter=now", "limit=0", "limit=101", "state=dead", "nextToken=x", "metadata=x"):
        assert e2b("GET", f"/v2/sandboxes?{query}").status == 400, query
