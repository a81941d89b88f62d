"""File operations on a sandbox's own init: what its workers are, what they may, when they end."""
import re

import pytest

from filelib import Files
from harness import until
from wire import File, N, entry, fails, frame, run


def bytes_of(got):
    return b"".join(body for kind, body in got if kind == "DATA")


def workers(api, box):
    return Files(api, box).workers()


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


def test_a_directory_of_the_image_moves(daemon, api, box):
    """The overlay refuses to rename what the image has: it is copied, whole, and removed."""
    api.out(box, "mkdir -p /opt/mine && chown 1000:1000 /opt/mine")
    before = api.out(box, "cd /usr/share/perl5 2>/dev/null || cd /usr/share/doc; pwd; "
                          "find . | sort | head -2000 | md5sum; find . -type f | wc -l")
    where = before.split()[0]
    run(daemon, box, "move", path=where, to="/opt/moved")
    after = api.out(box, "cd /opt/moved; find . | sort | head -2000 | md5sum; find . -type f | wc -l")
    assert before.split()[1:] == after.split()
    assert api.exec(box, f"test -e {where}")["exit_code"] == 1
    run(daemon, box, "copy", path="/usr/bin", to="/opt/bin", flags="recursive")
    api.out(box, "diff -r --no-dereference /usr/bin /opt/bin")
    assert api.out(box, "ls -A /opt").split() == ["bin", "mine", "moved"]  # no half-made names


def test_search_and_replace_in_the_sandbox(daemon, api, tiny):
    api.out(tiny, r"mkdir -p /srv/t; printf 'alpha 12\nbeta 345\n' > /srv/t/a; printf '\0alpha' > /srv/t/b")
    got = run(daemon, tiny, "search", path="/srv/t", text=r"^(\w+) ([0-9]{2,})$", flags="regex")
    assert [(b["line"], b["column"], b["text"]) for k, b in got if k == "MATCH"] == [
        (1, 1, "alpha 12"), (2, 1, "beta 345")]
    got = run(daemon, tiny, "replace", path="/srv/t", text=r"(\w+) ([0-9]+)", to=r"\2:\1", flags="regex")
    assert [(b["path"], b["count"]) for k, b in got if k == "CHANGE"] == [("/srv/t/a", 2)]
    assert api.out(tiny, "cat /srv/t/a") == "12:alpha\n345:beta\n"
    assert fails(daemon, tiny, "search", path="/srv/t", text="(", flags="regex") == "invalid_pattern"
    # More memory than an expression may have is a refusal, not the end of the worker.
    bomb = "((((x{1,200}){1,200}){1,200}){1,200}){1,200}"
    assert fails(daemon, tiny, "search", path="/srv/t", text=bomb, flags="regex") in (
        "out_of_memory", "invalid_pattern")


def test_watch_in_the_sandbox(daemon, api, tiny):
    api.out(tiny, "mkdir -p /srv/w")
    f = File(daemon, tiny, "watch", path="/srv/w", flags="recursive")
    assert f.next()[0] == "OK"
    api.out(tiny, "mkdir -p /srv/w/a/b && echo x > /srv/w/a/b/f && mv /srv/w/a/b/f /srv/w/g && rm /srv/w/g")
    seen = []
    while not seen or seen[-1] != (N["WIRE_REMOVED"], "/srv/w/g"):
        kind, body = f.next()
        assert kind == "CHANGE"
        seen.append((body["change"], body["path"]))
    assert (N["WIRE_CREATED"], "/srv/w/a") in seen and (N["WIRE_CREATED"], "/srv/w/a/b") in seen
    api.out(tiny, "rm -r /srv/w")
    got = list(f)
    assert got[-1][0] == "ERROR" and got[-1][1]["what"] == "file_not_found"


def test_usage_of_everything_leaves_proc_out(daemon, tiny):
    got = run(daemon, tiny, "usage", path="/")
    assert got[-1][1]["size"] < 1 << 34
    assert not [b for k, b in got if k == "SKIPPED" and b["path"].startswith("/proc/1/")]


def test_xattrs_and_reflinks(daemon, api, tiny):
    run(daemon, tiny, "write", frame("DATA", b"x" * 65536), frame("END"), path="/srv/f")
    run(daemon, tiny, "xattr_set", path="/srv/f", xattr=b"user.note\0\xff\0b")
    run(daemon, tiny, "copy", path="/srv/f", to="/srv/g")
    got = run(daemon, tiny, "xattrs", path="/srv/g")
    assert got[0][1]["xattrs"]["user.note"] == b"\xff\0b"
    assert fails(daemon, tiny, "xattr_rm", path="/srv/g", text="user.other") == "xattr_not_found"
    assert fails(daemon, tiny, "xattr_set", path="/srv/g", xattr=b"nonsense\0x") in (
        "not_supported", "invalid_field")


def test_paths_lead_where_they_lead_inside(daemon, api, tiny):
    api.out(tiny, "mkdir -p /srv/d/e; ln -sfn /srv/d/e /srv/l; echo in > /srv/d/f; ln -sfn /proc/self/root/srv/d /srv/m")
    assert bytes_of(run(daemon, tiny, "read", path="/srv/l/../f")) == b"in\n"
    assert bytes_of(run(daemon, tiny, "read", path="/srv/m/f")) == b"in\n"
    assert bytes_of(run(daemon, tiny, "read", path="/proc/self/root/srv/d/f")) == b"in\n"
    got = run(daemon, tiny, "write", frame("DATA", b"y"), frame("END"), path="/proc/self/root/srv/new")
    assert api.out(tiny, "cat /srv/new") == "y"
    assert fails(daemon, tiny, "read", path="/dev/zero") == "not_a_file"
    assert fails(daemon, tiny, "write", frame("END"), path="/dev/null") == "not_a_file"
    assert fails(daemon, tiny, "read", path="/proc/1/environ", user="user") == "permission_denied"
    assert fails(daemon, tiny, "read", path="/proc/1/mem") in ("permission_denied", "file_not_found")
    assert fails(daemon, tiny, "write", frame("END"), path="/proc/sys/kernel/hostname") in (
        "read_only", "permission_denied", "not_supported")


def test_no_process_left_is_no_lock_out(daemon, api):
    """A sandbox full of processes can still be looked at."""
    box = api.create(image="tiny", pids=20)["id"]
    try:
        api.start(box, "for i in $(seq 100); do sleep 600 & done; wait")
        until(lambda: api.usage(box)["pids"] >= 18, "a full sandbox")
        assert run(daemon, box, "stat", path="/")[-1][0] == "OK"
    finally:
        api.delete(box)
