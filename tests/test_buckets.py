"""Buckets as volumes: objects of an S3 store as files, served outside of every sandbox."""
import os
import pathlib
import shutil
import signal
import uuid

import pytest

import harness
from harness import until
from s3_kit import s3  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.timeout(harness.DEADLINE * 12),  # the first of them may install the storage
              pytest.mark.skipif(not shutil.which("s3fs") or not pathlib.Path("/dev/fuse").exists(),
                                 reason="s3fs or /dev/fuse is missing")]


@pytest.fixture(scope="module")
def stored(tiny_tar, s3):
    """A daemon that may reach this machine's loopback, and the store's key as a secret."""
    with harness.running("--egress-open", "127.0.0.1", images={"tiny": tiny_tar}) as d:
        d.api.ok("POST", "/v1/secrets", {"name": "s3", "value": s3.secret})
        yield d


def bucket(s3, **more):
    return {"endpoint": s3.url, "bucket": s3.bucket, "region": s3.region, "access_key": s3.key, "secret": "s3",
            "path_style": True, **more}


def make(api, s3, **more):
    return api.ok("POST", "/v1/volumes", {"name": "b" + uuid.uuid4().hex[:10], "kind": "bucket", "bucket": bucket(s3, **more)})


def test_objects_are_files_in_several_sandboxes(stored, s3):
    api = stored.api
    s3.put("old/name.txt", b"from before")
    v = make(api, s3)
    assert v["kind"] == "bucket" and v["bucket"] == {**bucket(s3), "prefix": "", "read_only": False}
    a = api.create(image="tiny", volumes=[{"volume": v["id"], "path": "/b"}])["id"]
    b = api.create(image="tiny", volumes=[{"volume": v["id"], "path": "/deep/b", "read_only": True}])["id"]
    assert api.out(a, "cat /b/old/name.txt") == "from before"
    api.out(a, "mkdir /b/d && echo new > /b/d/f && stat -c %u /b/d/f")
    assert s3.get("d/f") == b"new\n"
    assert api.out(a, "stat -c %u:%g /b/d/f") == "0:0\n"
    api.out(a, "echo user > /b/u", user="1000:1000")
    assert api.out(b, "cat /deep/b/d/f /deep/b/u") == "new\nuser\n"
    assert api.exec(b, "mount -o remount,rw /deep/b; mount -o remount,bind,rw /deep/b; echo x > /deep/b/no")["exit_code"] != 0
    for path, body in (("pause", None), ("checkpoints", {"memory": True}), ("fork", {"memory": True})):
        assert "'/b'" in api.refused(409, "cannot_dump", "POST", f"/v1/sandboxes/{a}/{path}", body)["message"]
    assert api.out(a, "cat /b/d/f") == "new\n"  # it goes on
    api.delete(a)
    api.delete(b)
    api.ok("DELETE", f"/v1/volumes/{v['id']}")


def servers(daemon, program="warren-bucket"):
    return [int(p.parent.name) for p in pathlib.Path("/proc").glob("[0-9]*/cmdline")
            if _says(p, program) and _is_of(daemon, p.parent)]


def _says(path, program):
    try:
        return path.read_bytes().split(b"\0")[0].rsplit(b"/", 1)[-1] == program.encode()
    except OSError:
        return False


def _is_of(daemon, proc):
    """Its user is of a range that this daemon lent: another daemon's servers are not ours."""
    try:
        uid = int(next(line for line in (proc / "status").read_text().splitlines() if line.startswith("Uid")).split()[1])
    except (OSError, StopIteration):
        return False
    bases = [int(x.read_text().split()[2]) for x in (daemon.run / "buckets").glob("*/record")]
    return any(base <= uid < base + 65536 for base in bases)


@pytest.fixture
def seen(stored, s3):
    """A sandbox that sees the bucket at /b."""
    made = []

    def make_one(**more):
        v = make(stored.api, s3, **more)
        box = stored.api.create(image="tiny", volumes=[{"volume": v["id"], "path": "/b"}])["id"]
        made.append((box, v["id"]))
        return box, v["id"]
    yield make_one
    s3.gate.clear()
    serving = {p: pathlib.Path(f"/proc/{p}/cmdline") for name in ("warren-bucket", "s3fs") for p in servers(stored, name)}
    for box, v in made:
        stored.api.call("DELETE", f"/v1/sandboxes/{box}")
        stored.api.ok("DELETE", f"/v1/volumes/{v}")
    until(lambda: not list((stored.run / "buckets").iterdir()))
    until(lambda: not [p for p in serving.values() if _says(p, "warren-bucket") or _says(p, "s3fs")], "the servers' end")


def test_large_files(stored, s3, seen):
    api = stored.api
    box, v = seen(prefix="large")
    api.out(box, "dd if=/dev/urandom of=/x bs=1M count=40 2>/dev/null; cp /x /b/x")
    until(lambda: s3.keys_of("large").get("large/x") == 40 << 20)
    assert api.out(box, "cmp /x /b/x && echo same") == "same\n"
    until(lambda: len(stored.stored("spool")) == 1, "one place of what is being written")


def test_the_key_is_nowhere_in_reach(stored, s3, seen):
    box, v = seen()
    pids = servers(stored) + servers(stored, "s3fs")
    assert len(pids) == 2
    for pid in pids:
        proc = pathlib.Path(f"/proc/{pid}")
        assert s3.secret.encode() not in (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
        assert int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() in ("2", "0")
        assert "0" not in status["Uid"].split()
        assert int(memory_limit(pid)) <= 256 << 20
    net = {pathlib.Path(f"/proc/{pid}/ns/net").readlink() for pid in servers(stored, "s3fs")}
    assert pathlib.Path("/proc/self/ns/net").readlink() not in net
    assert s3.secret not in stored.log() and s3.secret not in str(stored.api.ok("GET", f"/v1/volumes/{v}"))
    for file in stored.run.rglob("*"):
        assert not file.is_file() or s3.secret.encode() not in file.read_bytes()
    assert api_out_has_no(stored.api, box, s3.secret)


def memory_limit(pid):
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for file in (f"/sys/fs/cgroup{path}/memory.max", f"/sys/fs/cgroup/memory{path}/memory.limit_in_bytes",
                     f"/sys/fs/cgroup/unified{path}/memory.max"):
            if (not controllers or "memory" in controllers) and pathlib.Path(file).exists():
                return pathlib.Path(file).read_text()
    raise AssertionError("no limit")


def api_out_has_no(api, box, secret):
    found = api.exec(box, f"cat /proc/mounts /proc/*/environ /proc/*/cmdline 2>/dev/null | grep -c '[{secret[0]}]{secret[1:12]}'")
    return found["stdout"].strip() == "0"


def test_files_without_a_sandbox(stored, s3):
    api = stored.api
    v = make(api, s3, prefix="api/files")["id"]
    assert api.call("PUT", f"/v1/volumes/{v}/files?path=/x.txt", b"by the API").status < 300
    assert s3.get("api/files/x.txt") == b"by the API"
    s3.put("api/files/y.txt", b"yes")
    assert api.call("GET", f"/v1/volumes/{v}/files?path=/y.txt").body == b"yes"
    names = {e["path"] for e in api.ok("GET", f"/v1/volumes/{v}/files/list?path=/")["entries"]}
    assert names == {"/x.txt", "/y.txt"}
    for method, path, body in (("POST", "/checkpoints", {}), ("PATCH", "", {"size_mb": 64})):
        api.refused(400, "not_supported", method, f"/v1/volumes/{v}{path}", body)
    api.ok("DELETE", f"/v1/volumes/{v}")
    assert s3.get("api/files/x.txt") == b"by the API"  # the store's own


@pytest.mark.parametrize("change", [
    {"endpoint": "ftp://x"}, {"endpoint": "http://"}, {"endpoint": "http://a b"}, {"endpoint": "http://h/path"},
    {"endpoint": "http://h:0"}, {"endpoint": "http://h:99999"}, {"endpoint": "http://u:p@h"}, {"bucket": "a,b"}, {"bucket": "x"},
    {"prefix": "../x"}, {"prefix": "/x"}, {"prefix": "a,ro"}, {"region": "a b"}, {"access_key": "a:b"}, {"secret": ""},
    {"fish": 1}, {"path_style": "yes"}])
def test_odd_buckets_are_refused(stored, s3, change):
    reply = stored.api.call("POST", "/v1/volumes", {"kind": "bucket", "bucket": bucket(s3, **change)})
    assert reply.status == 400, reply


def test_a_bucket_by_hand(stored, s3):
    made = stored.cli("volume", "create", "--bucket", s3.bucket, "--endpoint", s3.url, "--region", s3.region, "--access-key",
                      s3.key, "--secret", "s3", "--path-style", "--prefix", "hand", "by-hand")
    assert made.stdout == "by-hand\n", made.stderr
    assert "bucket" in stored.cli("volume", "ls").stdout
    wrote = stored.cli("run", "--image", "tiny", "--volume", "by-hand:/b", "--", "sh", "-c", "echo hi > /b/f")
    assert wrote.returncode == 0 and s3.get("hand/f") == b"hi\n"
    assert stored.cli("volume", "rm", "by-hand").returncode == 0


def test_what_does_not_fit_together_is_refused(stored, s3):
    api = stored.api
    for body in ({"kind": "bucket"}, {"bucket": bucket(s3)}, {"kind": "files", "bucket": bucket(s3)},
                 {"kind": "bucket", "bucket": bucket(s3), "size_mb": 64}, {"kind": "fish"},
                 {"kind": "bucket", "bucket": {k: v for k, v in bucket(s3).items() if k != "secret"}}):
        assert api.call("POST", "/v1/volumes", body).status == 400
    api.refused(404, "secret_not_found", "POST", "/v1/volumes", {"kind": "bucket", "bucket": bucket(s3, secret="nothing")})


def test_a_store_that_says_no_is_a_clear_error(stored, s3):
    api = stored.api
    api.ok("POST", "/v1/secrets", {"name": "wrong", "value": "not/the+secret"})
    # 127.0.0.2 is this machine too, and was not opened; nothing listens on port 1
    for more, why in (({"secret": "wrong"}, "invalid credentials"), ({"bucket": "nothing-there"}, ""),
                      ({"endpoint": s3.url.replace("127.0.0.1", "127.0.0.2")}, ""), ({"endpoint": "http://127.0.0.1:1"}, ""),
                      ({"endpoint": "http://169.254.169.254"}, "")):
        v = make(api, s3, **more)["id"]
        said = api.refused(424, "bucket_unreachable", "POST", "/v1/sandboxes",
                           {"image": "tiny", "volumes": [{"volume": v, "path": "/b"}]})["message"]
        assert why in said and "[INF]" not in said, said
        api.ok("DELETE", f"/v1/volumes/{v}")
    until(lambda: not list((stored.run / "buckets").iterdir()))


def test_a_server_that_dies_comes_back(stored, s3, seen):
    api = stored.api
    box, v = seen()
    s3.put("heal", b"healed")
    for program in ("s3fs", "warren-bucket"):
        harness.kill_all(servers(stored, program), lambda pids: None)
        until(lambda: api.exec(box, "cat /b/heal")["stdout"] == "healed")
    until(lambda: [e["type"] for e in api.ok("GET", f"/v1/events?sandbox={box}")["events"]].count("volume.found") == 2)
    assert api.out(box, "grep -c ' /b ' /proc/mounts") == "1\n"  # the dead ones are out of the way


def test_it_outlives_the_keeper_and_the_daemon(stored, s3, seen):
    api = stored.api
    box, v = seen()
    before = servers(stored, "s3fs")
    stored.kill_keeper()
    until(lambda: api.exec(box, "echo 1 > /b/kept")["exit_code"] == 0)
    stored.kill_everything()
    stored.start()
    assert api.out(box, "cat /b/kept") == "1\n" and servers(stored, "s3fs") == before
    # what died while nobody looked is shown again
    stored.kill()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    stored.start()
    until(lambda: api.exec(box, "cat /b/kept")["stdout"] == "1\n")


def test_a_store_that_hangs_holds_nobody(stored, s3, seen):
    api = stored.api
    box, v = seen()
    s3.gate.fault("slow", match="hang", at=600, times=1000)
    n = api.start(box, "cat /b/hang")["process"]
    until(lambda: any(f.hits for f in s3.gate.faults))
    other = api.create(image="tiny")["id"]  # the keeper goes on
    assert api.out(other, "echo on") == "on\n"
    api.delete(other)
    assert api.process(box, n)["state"] == "running"
    api.ok("POST", f"/v1/sandboxes/{box}/stop")  # it waits for no answer: the store would keep quiet for minutes
    s3.gate.clear()
    api.ok("POST", f"/v1/sandboxes/{box}/start")
    s3.put("there", b"again")
    assert api.out(box, "cat /b/there") == "again"
