"""Files and archives that mean harm: a right answer or a clear error, and the host untouched."""
import contextlib
import http.client
import io
import os
import subprocess
import tarfile
import threading
import zipfile
import zlib

import pytest

from filelib import Files, finish, form_of
from harness import until

CANARY = "/tmp/warren-canary-of-the-host"


@pytest.fixture
def files(api, tiny):
    api.out(tiny, "mkdir -p /srv")
    return Files(api, tiny)


@pytest.fixture
def canary():
    """A file of the host that nobody inside may read, write or remove."""
    with open(CANARY, "w") as f:
        f.write("host")
    yield CANARY
    assert open(CANARY).read() == "host"
    os.unlink(CANARY)


# -- paths

def test_no_path_leads_to_the_host(api, tiny, files, canary):
    api.out(tiny, "ln -s / /srv/root; ln -s ../../../../../../../../ /srv/up; "
            "ln -s /proc/1/root /srv/init; ln -s /proc/self/root /srv/self")
    for path in (canary, "/.." * 20 + canary, "/srv/root" + canary, "/srv/up" + canary,
                 "/proc/self/root" + canary, "/proc/1/root" + canary, "/srv/init" + canary,
                 "/srv/self" + canary, "/proc/self/cwd/../../../.." + canary):
        reply = files.call("GET", "", path)
        assert reply.status in (403, 404), (path, reply)
        reply = files.call("DELETE", "", path, force="true")
        assert reply.status in (204, 403, 404), (path, reply)


def test_etc_of_the_sandbox_not_of_the_host(api, tiny, files):
    for path in ("/etc/passwd", "/../../etc/passwd", "/proc/self/root/etc/passwd"):
        assert files.get(path) == api.out(tiny, "cat /etc/passwd").encode(), path


def test_what_is_not_a_file_does_not_hang(api, tiny, files):
    api.out(tiny, "mkfifo /srv/fifo")
    for path in ("/srv/fifo", "/dev/zero", "/dev/tty", "/dev/full"):
        files.refused(400, "not_a_file", "GET", "", path)
        files.refused(400, "not_a_file", "PUT", "", path, b"x")
    assert api.out(tiny, "test -c /dev/zero && echo still") == "still\n"


def test_a_write_through_a_link_stays_inside(api, tiny, files, canary):
    api.out(tiny, f"ln -s {canary} /srv/l; ln -s /srv/real /srv/dangling")
    files.put("/srv/l", b"evil")
    assert api.out(tiny, ["cat", canary]) == "evil"  # one of the sandbox's own, by that name
    files.put("/srv/dangling", b"x")
    assert "x" in (files.get("/srv/dangling").decode())


def test_a_file_that_grows_and_shrinks_while_it_is_read(api, tiny, files):
    """What was promised is what comes, or the connection is cut; never a mix-up of requests."""
    job = api.start(tiny, "while :; do head -c 3000000 /dev/zero > /srv/f; : > /srv/f; done")
    try:
        until(lambda: files.exists("/srv/f"), "the file")
        whole = 0
        for _ in range(30):
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                reply = files.call("GET", "", "/srv/f")
                assert reply.status == 200 and not reply.body.strip(b"\0"), reply
                assert len(reply.body) == int(reply.headers["Content-Length"])
                whole += 1
        assert whole
        grow = api.start(tiny, "while :; do echo more >> /srv/g; done")
        until(lambda: files.exists("/srv/g"), "the file")
        for _ in range(20):
            reply = files.call("GET", "", "/srv/g")
            assert len(reply.body) == int(reply.headers["Content-Length"])
        api.call("DELETE", f"/v1/sandboxes/{tiny}/processes/{grow['process']}")
    finally:
        api.call("DELETE", f"/v1/sandboxes/{tiny}/processes/{job['process']}")
    assert files.put("/srv/after", b"ok")["size"] == 2


def test_directories_swapped_under_a_walk(api, tiny, files, canary):
    api.out(tiny, "mkdir -p /srv/a/d /srv/keep; touch /srv/a/d/1 /srv/a/d/2 /srv/keep/me")
    job = api.start(tiny, "cd /srv/a; while :; do mv d e; ln -s /srv/keep d; rm d; mv e d; done")
    try:
        for _ in range(20):
            files.call("GET", "/list", "/srv/a", depth=5)
            files.call("GET", "/archive", "/srv/a")
            files.call("DELETE", "", "/srv/a/d", recursive="true", force="true")
            files.call("POST", "/mkdir", body={"path": "/srv/a/d"})
    finally:
        api.call("DELETE", f"/v1/sandboxes/{tiny}/processes/{job['process']}")
    assert files.exists("/srv/keep/me")  # a link put in the way was not followed


# -- archives

def tar_with(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, more in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            data = more.pop("data", b"")
            info.size = len(data)
            for key, value in more.items():
                setattr(info, key, value)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("member", [
    ("/srv/abs", tarfile.REGTYPE, {"data": b"x"}),
    ("../up", tarfile.REGTYPE, {"data": b"x"}),
    ("a/../../up", tarfile.REGTYPE, {"data": b"x"}),
    ("hard", tarfile.LNKTYPE, {"linkname": "/etc/passwd"}),
    ("hard", tarfile.LNKTYPE, {"linkname": "../../etc/passwd"}),
    ("hard", tarfile.LNKTYPE, {"linkname": "not-there"}),
    ("null", tarfile.CHRTYPE, {"devmajor": 1, "devminor": 3}),
    ("disk", tarfile.BLKTYPE, {"devmajor": 8, "devminor": 0}),
    ("n" * 5000, tarfile.REGTYPE, {"data": b"x"}),
])
def test_entries_that_lead_out_are_refused_by_name(api, tiny, files, canary, member):
    name, kind, more = member
    error = files.refused(400, "invalid_archive", "PUT", "/archive", "/srv/in",
                          tar_with((name, kind, dict(more))))
    assert name[:50] in error["message"]
    assert not files.exists("/srv/up") and not files.exists("/srv/abs")


def test_a_link_in_an_archive_does_not_lead_the_rest_out(api, tiny, files):
    """dir -> /etc, then dir/passwd: what is outside the directory stays."""
    before = files.get("/etc/passwd")
    body = tar_with(("dir", tarfile.SYMTYPE, {"linkname": "/etc"}),
                    ("dir/passwd", tarfile.REGTYPE, {"data": b"evil"}))
    files.call("PUT", "/archive", "/srv/in", body)
    assert files.get("/etc/passwd") == before


def test_a_ten_gigabyte_sparse_member(api, make):
    """Ten gigabytes of nothing take no room and no time."""
    files = Files(api, make(image="tiny", disk_mb=64)["id"])
    with open("/tmp/warren-sparse", "wb") as f:
        f.truncate(10 << 30)
        f.seek(5 << 30)
        f.write(b"middle")
    try:
        body = subprocess.run(["tar", "-C", "/tmp", "-S", "-c", "warren-sparse"],
                              capture_output=True, check=True, timeout=60).stdout
    finally:
        os.unlink("/tmp/warren-sparse")
    assert len(body) < 1 << 20
    files.ok("PUT", "/archive", "/srv/in", body)
    e = files.stat("/srv/in/warren-sparse")
    assert e["size"] == 10 << 30 and e["disk_bytes"] < 1 << 20
    assert files.get("/srv/in/warren-sparse", {"Range": f"bytes={5 << 30}-{(5 << 30) + 5}"}) == \
        b"middle"


def bomb(size):
    """A zip whose one entry is `size` bytes of text that is not zeros."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        with z.open("bomb", "w") as f:
            for _ in range(size >> 20):
                f.write(b"B" * (1 << 20))
    return out.getvalue()


@pytest.mark.timeout(300)
def test_a_bomb_is_contained_by_the_disk_limit(api, make):
    who = make(image="tiny", disk_mb=32)["id"]
    files = Files(api, who)
    body = bomb(400 << 20)
    assert len(body) < 1 << 20
    files.refused(507, "no_space", "PUT", "/archive", "/srv/in", body)
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    gz = b"".join(packed.compress(b"B" * (1 << 20)) for _ in range(400)) + packed.flush()
    files.refused(507, "no_space", "PUT", "", "/srv/file", gz, {"Content-Encoding": "gzip"})
    files.ok("DELETE", "", "/srv", recursive="true", force="true")
    files.put("/srv/after", b"ok")
    assert api.usage(who)["disk_bytes"] <= 40 << 20


def test_archives_of_garbage_do_not_hurt(api, tiny, files):
    good = tar_with(("a", tarfile.REGTYPE, {"data": b"x" * 5000}),
                    ("b", tarfile.SYMTYPE, {"linkname": "a"}))
    import random
    rnd = random.Random(7)
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(20):
            bad[rnd.randrange(len(bad))] = rnd.randrange(256)
        reply = files.call("PUT", "/archive", "/srv/fuzz", bytes(bad))
        assert reply.status in (200, 400), reply
    assert files.put("/srv/after", b"ok")["size"] == 2


def test_no_archiver_is_left_behind(api, daemon, tiny, files):
    """A client that goes away in the middle of an archive, either way."""
    def archivers():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if (open(f"/proc/{pid}/comm").read() == "warren-archive\n"
                        and f"PPid:\t{daemon.process.pid}\n" in open(f"/proc/{pid}/status").read()):
                    found.append(pid)
        return found
    files.put("/srv/big", os.urandom(1 << 20) * 20)
    connection = files.raw("PUT", "/archive", "/srv/in", {"Content-Length": "100000000"})
    connection.send(tar_with(("a", tarfile.REGTYPE, {"data": b"x" * 100_000}))[:60_000])
    until(archivers, "the archiver to start")
    connection.close()
    connection, response = api.open("GET", files.url("/archive", "/srv", format="tar"))
    response.read(1000)
    connection.sock and connection.sock.close()
    response.close()
    connection.close()
    until(lambda: not archivers(), "the archivers to go")


# -- the daemon dies

def test_a_killed_daemon_leaves_no_junk(fresh):
    who = fresh.api.create(image="tiny")["id"]
    files = Files(fresh.api, who)
    files.put("/srv/d/file", b"old")
    connection = files.raw("PUT", "", "/srv/d/file", {"Content-Length": "50000000"})
    connection.send(b"x" * 5_000_000)
    until(files.workers, "a worker that takes it")
    fresh.kill()
    connection.close()
    fresh.start()
    until(lambda: not files.workers(), "the worker's end")
    assert fresh.api.out(who, "ls -A /srv/d") == "file\n"
    assert files.get("/srv/d/file") == b"old"


# -- forms

def test_a_form_that_never_ends_its_head(files):
    boundary = "b"
    body = b"--b\r\nContent-Disposition: form-data; filename=\"" + b"x" * 100_000
    files.refused(400, "invalid_request", "POST", "/write", None, body,
                  {"Content-Type": f"multipart/form-data; boundary={boundary}"})


def test_many_transfers_at_once(api, tiny, files):
    errors = []

    def one(i):
        try:
            body, headers = form_of([(f"/srv/m/{i}/{k}", b"%d" % k) for k in range(50)])
            files.ok("POST", "/write", None, body, headers)
            files.call("GET", "/archive", f"/srv/m/{i}", format="tar.gz")
            assert len(files.read_many([f"/srv/m/{i}/{k}" for k in range(50)])) == 50
        except Exception as e:  # noqa: BLE001 - told below
            errors.append(e)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
