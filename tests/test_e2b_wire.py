"""E2B's interface as it is on the wire: what its own client never sends, sends wrongly, or sends in another coding."""
import base64
import gzip
import json
import time

import pytest

from envd_kit import b64, e2b, envd, envelope, envelopes, made, put, running  # noqa: F401 (fixtures)
from harness import until


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


def test_what_it_is_lies_in_files_too(envd):
    want = {".E2B_SANDBOX": b"true", ".E2B_SANDBOX_ID": envd.id.encode(), ".E2B_TEMPLATE_ID": b"base"}
    envd.stream("process.Process/Start", {"process": {"cmd": "/bin/true", "envs": {"E2B_SANDBOX_ID": "lie"}}, "stdin": False})
    until(lambda: all(envd.call("GET", f"/files?path=/run/e2b/{n}").status == 200 for n in want), "the files")
    assert {n: envd.call("GET", f"/files?path=/run/e2b/{n}").body for n in want} == want


def test_a_link_is_told_with_where_it_leads(envd):
    put(envd, "l/to/file", b"x")
    envd.stream("process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", "cd l; ln -s ../l/./to/file here; "
                "ln -s nowhere broken; ln -s /etc dir"], "cwd": "/home/user"}, "stdin": False})
    listed = {e["name"]: e for e in envd.rpc("filesystem.Filesystem/ListDir", {"path": "l"}).json["entries"]}
    assert (listed["here"]["symlinkTarget"], listed["here"]["type"]) == ("/home/user/l/to/file", "FILE_TYPE_FILE")
    assert (listed["dir"]["symlinkTarget"], listed["dir"]["type"]) == ("/etc", "FILE_TYPE_DIRECTORY")
    assert listed["broken"]["symlinkTarget"] == "/home/user/l/nowhere" and "type" not in listed["broken"]


def test_metrics_of_a_sandbox(envd):
    got = envd.call("GET", "/metrics").json
    assert got["cpu_count"] >= 1 and 0 < got["mem_used"] <= got["mem_total"] and got["disk_total"] > 0
    assert abs(got["ts"] - time.time()) < 600
    assert envd.call("GET", "/metrics", headers={"X-Access-Token": "wrong"}).status == 401


# ---- files ----

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


def test_parts_name_each_file_once(envd):
    def send(*names, query=""):
        body = b"".join(f'--b\r\nContent-Disposition: form-data; name="file"; filename="{n}"\r\n\r\n{n}\r\n'.encode()
                        for n in names) + b"--b--\r\n"
        return envd.call("POST", f"/files{query}", body, {"Content-Type": "multipart/form-data; boundary=b"})
    assert [w["path"] for w in send("once/a", "once/b").json] == ["/home/user/once/a", "/home/user/once/b"]
    assert send("once/a", "once/b", "once/a").status == 400
    assert send("x", "y", query="?path=once/c").status == 400
    assert send("x", query="?path=once/c").status == 200 and envd.call("GET", "/files?path=once/c").body == b"x"
    assert send("").status == 400


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
