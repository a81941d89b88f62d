"""Changes of files, by stream and by poll."""
import pytest

from filelib import Files
from harness import until


@pytest.fixture
def files(api, tiny):
    api.out(tiny, "mkdir -p /srv")
    return Files(api, tiny)


def stream(api, files, path, **query):
    s = api.stream("GET", files.url("/watch", path, **query))
    assert next(s) == {"type": "ready"}
    return s


def test_changes_come_as_they_happen(api, tiny, files):
    api.out(tiny, "mkdir /srv/w")
    with stream(api, files, "/srv/w") as s:
        files.put("/srv/w/a", b"one")
        e = s.until(path="/srv/w/a")
        assert e["type"] in ("create", "write", "rename") and e["time"].endswith("Z")
        api.out(tiny, "echo x > /srv/w/b")
        assert s.until(type="create", path="/srv/w/b")["entry"]["type"] == "file"
        assert s.until(type="write", path="/srv/w/b")["entry"]["size"] == 2
        api.out(tiny, "mv /srv/w/b /srv/w/c")
        e = s.until(type="rename", path="/srv/w/b")
        assert e["to"] == "/srv/w/c" and e["entry"]["path"] == "/srv/w/c"
        api.out(tiny, "chmod 600 /srv/w/c")
        assert s.until(type="chmod", path="/srv/w/c")["entry"]["mode"] == "0600"
        api.out(tiny, "mv /srv/w/c /srv/gone")
        assert s.until(type="remove", path="/srv/w/c")["entry"] is None
        api.out(tiny, "mv /srv/gone /srv/w/back")
        s.until(type="create", path="/srv/w/back")
        api.out(tiny, "rm /srv/w/back")
        s.until(type="remove", path="/srv/w/back")


def test_recursive_sees_directories_made_later(api, tiny, files):
    api.out(tiny, "mkdir -p /srv/w/old")
    with stream(api, files, "/srv/w", recursive="true") as s:
        api.out(tiny, "mkdir -p /srv/w/new/deep; echo 1 > /srv/w/new/deep/f; echo 2 > /srv/w/old/g")
        missing = {"/srv/w/new/deep/f", "/srv/w/old/g"}
        while missing:
            missing.discard(next(s).get("path"))  # the stream's end is no answer


def test_what_is_watched_goes_away(api, tiny, files):
    api.out(tiny, "mkdir /srv/w")
    with stream(api, files, "/srv/w") as s:
        api.out(tiny, "rmdir /srv/w")
        assert s.until(type="error")["code"] == "file_not_found"
        assert list(s) == []


def test_a_watch_ends_with_its_sandbox(api, tiny, files):
    with stream(api, files, "/srv") as s:
        api.delete(tiny)
        assert s.until(type="error")["code"] == "sandbox_gone"


def test_watches_that_cannot_be(files):
    files.refused(404, "file_not_found", "GET", "/watch", "/nowhere")
    files.refused(403, "permission_denied", "GET", "/watch", "/root", user="user")
    files.refused(404, "file_not_found", "POST", "/watches", body={"path": "/nowhere"})
    files.refused(400, "missing_field", "POST", "/watches", body={})
    for n in ("1", "0", "x", "-1", "99999999999999999999"):
        files.refused(404, "watch_not_found", "GET", f"/watches/{n}")
    files.refused(404, "watch_not_found", "DELETE", "/watches/7")


def test_by_poll(api, tiny, files):
    api.out(tiny, "mkdir /srv/w")
    n = files.ok("POST", "/watches", body={"path": "/srv/w", "recursive": True})["watch"]
    assert files.ok("GET", f"/watches/{n}") == {"events": [], "dropped": 0}
    api.out(tiny, "echo 1 > /srv/w/f")
    got = []

    def seen():
        got.extend(files.ok("GET", f"/watches/{n}", wait_s=10)["events"])
        return {"create", "write"} <= {e["type"] for e in got}
    until(seen, "the events")
    assert all(e["path"] == "/srv/w/f" for e in got)
    assert files.ok("GET", f"/watches/{n}")["events"] == []
    files.refused(400, "invalid_query", "GET", f"/watches/{n}", wait_s=61)
    files.ok("DELETE", f"/watches/{n}")
    files.refused(404, "watch_not_found", "GET", f"/watches/{n}")


def test_polls_that_nobody_makes_are_counted(api, tiny, files):
    """More than a watch keeps: each change is told, counted as dropped, or covered by an overflow."""
    api.out(tiny, "mkdir /srv/w")
    n = files.ok("POST", "/watches", body={"path": "/srv/w"})["watch"]
    api.out(tiny, "cd /srv/w; i=0; while [ $i -lt 6000 ]; do : > f$i; i=$((i+1)); done")
    counts = {"told": 0, "dropped": 0, "overflow": False}

    def accounted():
        got = files.ok("GET", f"/watches/{n}")
        counts["told"] += len(got["events"])
        counts["dropped"] += got["dropped"]
        counts["overflow"] |= any(e["type"] == "overflow" for e in got["events"])
        assert len(got["events"]) <= 4096
        return counts["overflow"] or counts["told"] + counts["dropped"] >= 6000
    until(accounted, "every change to be accounted for")


def test_one_sandbox_has_so_many_watches(api, tiny, files):
    made = [files.ok("POST", "/watches", body={"path": "/srv"})["watch"] for _ in range(64)]
    assert len(set(made)) == 64
    files.refused(409, "too_many_watches", "POST", "/watches", body={"path": "/srv"})
    files.ok("DELETE", f"/watches/{made[0]}")
    files.ok("POST", "/watches", body={"path": "/srv"})


def test_a_kept_watch_tells_why_it_ended(api, tiny, files):
    api.out(tiny, "mkdir /srv/w")
    n = files.ok("POST", "/watches", body={"path": "/srv/w"})["watch"]
    api.out(tiny, "rmdir /srv/w")

    def ended():
        reply = files.call("GET", f"/watches/{n}", wait_s=5)
        return reply.status == 404 and reply.json["error"]
    assert until(ended, "the end")["code"] == "watch_not_found"
