"""File operations on a sandbox's own init: what its workers are, what they may, when they end."""
import re

import pytest

from harness import until
from wire import File, N, entry, fails, frame, run


def bytes_of(got):
    return b"".join(body for kind, body in got if kind == "DATA")


def workers(api, box):
    """Pids of file workers, as the sandbox sees them."""
    return api.out(box, "grep -l warren-file /proc/[0-9]*/comm 2>/dev/null || true").split()


def test_write_and_read_back(daemon, api, tiny):
    got = run(daemon, tiny, "write", frame("DATA", b"hello "), frame("DATA", b"world"), frame("END"),
              path="sub/f", user="user", mode=0o640)
    assert got[0][1]["path"].endswith("/sub/f") and got[-1][1]["count"] == 1
    assert got[0][1]["owner"] == "user" and got[0][1]["mode"] == 0o640
    path = got[0][1]["path"]
    assert bytes_of(run(daemon, tiny, "read", path=path)) == b"hello world"
    assert api.out(tiny, f"cat {path}; stat -c ' %U %a' {path}") == "hello world user 640\n"
    assert bytes_of(run(daemon, tiny, "read", path="/proc/1/comm")) == b"warren-init\n"


def test_a_worker_is_one_of_the_workload(daemon, api, tiny):
    f = File(daemon, tiny, "write", path="/tmp/slow", user="user").send(frame("DATA", b"x"))
    pid = until(lambda: workers(api, tiny), "the worker")[0].split("/")[2]
    theirs = api.out(tiny, f"cat /proc/{pid}/cgroup")
    ours = api.out(tiny, "cat /proc/self/cgroup")
    leaf = re.compile(r"/p\d+$", re.M)  # in v2 each family has a group of its own
    assert leaf.sub("", theirs) == leaf.sub("", ours)
    assert api.out(tiny, f"grep -E '^(Uid|CapEff)' /proc/{pid}/status").split() == [
        "Uid:", *["1000"] * 4, "CapEff:", "0" * 16]
    assert api.exec(tiny, f"ls /proc/{pid}/fd", user="user")["exit_code"] != 0  # not to be looked into
    listed = api.ok("GET", f"/v1/sandboxes/{tiny}/processes?all=true")["processes"]
    assert not [p for p in listed if p["pid"] == int(pid)]
    f.close()
    until(lambda: not workers(api, tiny), "its end with its connection")
    assert api.exec(tiny, "ls -A /tmp")["stdout"] == ""


def test_a_stop_ends_workers(daemon, api, tiny):
    f = File(daemon, tiny, "write", path="/tmp/slow").send(frame("DATA", b"x"))
    until(lambda: workers(api, tiny), "the worker")
    api.ok("POST", f"/v1/sandboxes/{tiny}/stop")
    with pytest.raises((EOFError, ConnectionError)):
        f.next()
    f.close()


def test_disk_limit_is_no_space(daemon, api):
    box = api.create(image="tiny", disk_mb=64)["id"]
    try:
        f = File(daemon, box, "write", path="/root/big").send()
        piece = frame("DATA", bytes(range(256)) * 1024)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(2000):
                f.send(piece)
        assert f.next()[1]["what"] == "no_space"
        f.close()
        assert api.out(box, "ls -A /root").strip() in ("", ".profile")
    finally:
        api.delete(box)


def test_tree_in_at_the_root_and_out(daemon, api, tiny):
    got = run(daemon, tiny, "tree_in",
              entry(type=N["WIRE_REGULAR"], path="srv/a/one", size=3), frame("DATA", b"one"),
              entry(type=N["WIRE_SYMLINK"], path="srv/a/two", link="one"),
              entry(type=N["WIRE_REGULAR"], path="srv/a/own", size=0, uid=1000, gid=1000, mode=0o4755),
              frame("END"), path="/", flags="numeric")
    assert got[-1][1] == {"files": 3, "bytes": 3, "count": 3}
    assert api.out(tiny, "cat /srv/a/two; stat -c ' %u %a' /srv/a/own") == "one 1000 4755\n"
    got = run(daemon, tiny, "tree_out", path="/srv", flags="contents")
    assert [b["path"] for k, b in got if k == "ENTRY"] == ["a", "a/one", "a/own", "a/two"]
    assert bytes_of(got) == b"one"
    assert fails(daemon, tiny, "tree_in", entry(type=N["WIRE_BLOCKDEV"], path="disk", rdev=0x801),
                 path="/srv") == "not_supported"


def test_init_does_not_grow_with_its_workers(daemon, api, tiny):
    def rss():
        return int(api.out(tiny, "grep VmRSS /proc/1/status").split()[1])
    run(daemon, tiny, "stat", path="/")
    before = rss()
    for _ in range(50):
        run(daemon, tiny, "stat", path="/")
        run(daemon, tiny, "write", frame("DATA", b"x" * 200000), frame("END"), path="/tmp/f")
    assert rss() - before < 256, (before, rss())  # KiB
