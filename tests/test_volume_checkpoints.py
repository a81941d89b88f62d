"""Checkpoints of volumes: kept while sandboxes write, gone back to, made into volumes of their own."""
import http.client
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

from harness import DEADLINE, until
from test_volumes import fresh_name, put, read, team, volume  # noqa: F401 (fixtures)


def keep(api, v, **body):
    return api.ok("POST", f"/v1/volumes/{v}/checkpoints", body)


def restore(api, v, checkpoint):
    return api.ok("POST", f"/v1/volumes/{v}/restore", {"checkpoint": checkpoint})


def test_back_and_forth(api, volume):
    v = volume(size_mb=64)["id"]
    put(api, v, "/a", b"one")
    first = keep(api, v, name="first", comment="the first")
    assert (first["name"], first["comment"], first["volume"]) == ("first", "the first", v)
    put(api, v, "/a", b"two")
    put(api, v, "/b", b"new")
    second = keep(api, v)
    assert second["name"] is None
    listed = api.ok("GET", f"/v1/volumes/{v}/checkpoints")["checkpoints"]
    assert [c["id"] for c in listed] == [first["id"], second["id"]]
    assert api.ok("GET", f"/v1/volumes/{v}/checkpoints/first")["id"] == first["id"]
    assert restore(api, v, "first")["id"] == v
    assert read(api, v, "/a") == b"one"
    api.refused(404, "file_not_found", "GET", f"/v1/volumes/{v}/files?path=/b")
    restore(api, v, second["id"])
    assert (read(api, v, "/a"), read(api, v, "/b")) == (b"two", b"new")
    api.ok("DELETE", f"/v1/volumes/{v}/checkpoints/first")
    assert (read(api, v, "/a"), read(api, v, "/b")) == (b"two", b"new")
    for method, path, body in (("GET", "checkpoints/first", None), ("DELETE", "checkpoints/first", None),
                               ("POST", "restore", {"checkpoint": "first"}), ("POST", "checkpoints/first/volumes", {})):
        api.refused(404, "checkpoint_not_found", method, f"/v1/volumes/{v}/{path}", body)
    keep(api, v, name="twice")
    api.refused(409, "name_taken", "POST", f"/v1/volumes/{v}/checkpoints", {"name": "twice"})
    for body in ({"name": "a b"}, {"name": "a" * 20}, {"comment": "x" * 1025}, {"fish": 1}):
        assert api.call("POST", f"/v1/volumes/{v}/checkpoints", body).status == 400
    api.refused(400, "missing_field", "POST", f"/v1/volumes/{v}/restore", {})


def test_a_volume_from_a_checkpoint_goes_its_own_way(api, volume):
    v = volume(size_mb=64)["id"]
    put(api, v, "/a", b"one" * 1000000)
    c = keep(api, v, name="c")["id"]
    copy = api.ok("POST", f"/v1/volumes/{v}/checkpoints/c/volumes", {"name": fresh_name()})
    try:
        assert copy["size_mb"] == 64 and copy["id"] != v
        put(api, copy["id"], "/b", b"copy")
        put(api, v, "/a", b"changed")
        assert read(api, copy["id"], "/a") == b"one" * 1000000
        api.ok("DELETE", f"/v1/volumes/{v}/checkpoints/{c}")
        api.ok("DELETE", f"/v1/volumes/{v}")  # and its blocks stay where they are needed
        assert read(api, copy["id"], "/a") == b"one" * 1000000 and read(api, copy["id"], "/b") == b"copy"
    finally:
        api.ok("DELETE", f"/v1/volumes/{copy['id']}")


def test_sandboxes_write_on_and_must_stop_before_a_restore(api, volume):
    v = volume(size_mb=64)["id"]
    see = [{"volume": v, "path": "/data"}]
    a, b = api.create(image="tiny", volumes=see)["id"], api.create(image="tiny", volumes=see)["id"]
    try:
        # each number is in /data/b only after it is in /data/a
        n = api.start(a, "i=0; while :; do i=$((i+1)); echo $i > /data/.t; mv /data/.t /data/a; "
                         "echo $i > /data/.u; mv /data/.u /data/b; done")["process"]
        until(lambda: api.exec(b, "cat /data/b")["exit_code"] == 0)
        kept = [keep(api, v) for _ in range(3)]
        assert all(c["frozen_ms"] > 0 for c in kept)
        seen = int(api.out(b, "cat /data/a"))
        until(lambda: int(api.out(b, "cat /data/a")) > seen)  # they went on
        refused = api.refused(409, "volume_in_use", "POST", f"/v1/volumes/{v}/restore", {"checkpoint": kept[0]["id"]})
        assert a in refused["message"] and b in refused["message"]
        api.signal(a, n, "KILL")
        for c in kept:
            copy = api.ok("POST", f"/v1/volumes/{v}/checkpoints/{c['id']}/volumes", {})["id"]
            first, second = int(read(api, copy, "/a")), int(read(api, copy, "/b"))
            assert first - second in (0, 1)
            api.ok("DELETE", f"/v1/volumes/{copy}")
        api.ok("POST", f"/v1/sandboxes/{a}/stop")
        api.refused(409, "volume_in_use", "POST", f"/v1/volumes/{v}/restore", {"checkpoint": kept[0]["id"]})
        api.ok("POST", f"/v1/sandboxes/{b}/stop")
        restore(api, v, kept[0]["id"])
        api.ok("POST", f"/v1/sandboxes/{a}/start")
        assert int(api.out(a, "cat /data/a")) <= seen
        api.out(a, "echo more > /data/more")  # the limit and the rights came along
    finally:
        api.delete(a)
        api.delete(b)


def test_what_checkpoints_keep_counts_once(api, volume):
    v = volume(size_mb=64)["id"]
    some = bytes(range(256)) * 4096 * 20
    put(api, v, "/big", some)  # 20 MiB
    for _ in range(4):
        keep(api, v)  # and what was written is counted
    assert 20 << 20 <= _used(api, v) < 22 << 20
    put(api, v, "/big", some)
    keep(api, v)
    assert 40 << 20 <= _used(api, v) < 42 << 20
    reply = api.call("PUT", f"/v1/volumes/{v}/files?path=/big", some + some)
    assert reply.status == 507 and reply.code == "no_space", reply
    # going back gives no room away
    restore(api, v, api.ok("GET", f"/v1/volumes/{v}/checkpoints")["checkpoints"][0]["id"])
    assert read(api, v, "/big") == some
    assert _used(api, v) >= 20 << 20
    api.ok("PATCH", f"/v1/volumes/{v}", {"size_mb": 256})
    put(api, v, "/more", some + some)


def _used(api, v):
    return api.ok("GET", f"/v1/volumes/{v}")["used_bytes"]


def count_as_before_linux_6_7(daemon):
    """Turn the pool's quotas into full ones, as a pool has them that an older kernel made."""
    pool = pathlib.Path(daemon.data) / "pool.img"
    if not pool.exists():
        pytest.skip("the pool is part of the host's own btrfs")
    daemon.stop()
    daemon.teardown()
    with tempfile.TemporaryDirectory() as at:
        subprocess.run(["mount", "-o", "loop", pool, at], check=True)
        try:
            subprocess.run(["btrfs", "quota", "disable", at], check=True)
            subprocess.run(["btrfs", "quota", "enable", at], check=True)
            subprocess.run(["btrfs", "quota", "rescan", "-w", at], capture_output=True)  # enabling has begun one
        finally:
            subprocess.run(["umount", at], check=True)
    daemon.start()


def test_all_limits_hold_with_full_quotas(fresh):
    """Full quotas stop counting everything on the filesystem when a snapshot joins a group."""
    api = fresh.api
    count_as_before_linux_6_7(fresh)
    some = bytes(range(256)) * 4096 * 20
    v = api.ok("POST", "/v1/volumes", {"size_mb": 64})["id"]
    put(api, v, "/big", some)
    first = [keep(api, v)["id"] for _ in range(4)]
    assert 20 << 20 <= _used(api, v) < 22 << 20
    put(api, v, "/big", some)
    last = keep(api, v)["id"]
    assert 40 << 20 <= _used(api, v) < 42 << 20
    reply = api.call("PUT", f"/v1/volumes/{v}/files?path=/big", some + some)
    assert reply.status == 507 and reply.code == "no_space", reply
    copy = api.ok("POST", f"/v1/volumes/{v}/checkpoints/{last}/volumes", {"size_mb": 64})["id"]
    restore(api, v, first[0])
    assert 40 << 20 <= _used(api, v) < 42 << 20  # going back gives no room away
    reply = api.call("PUT", f"/v1/volumes/{v}/files?path=/more", some + some)
    assert reply.status == 507 and reply.code == "no_space", reply
    reply = api.call("PUT", f"/v1/volumes/{copy}/files?path=/more", some + some + some)
    assert reply.status == 507 and reply.code == "no_space", reply
    box = api.create(image="tiny", disk_mb=32)["id"]
    wrote = api.exec(box, "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/tmp/$i bs=1M count=8 && sync || exit 9; done")
    assert wrote["exit_code"] == 9, wrote
    for c in first:
        api.ok("DELETE", f"/v1/volumes/{v}/checkpoints/{c}")
    api.ok("DELETE", f"/v1/volumes/{copy}")
    # The kernel sees that nobody else has /big when it has written the deletions out.
    until(lambda: os.sync() or _used(api, v) >= 40 << 20, "the deletions", DEADLINE * 4)
    put(api, v, "/more", some)  # /big, /more, and what the last checkpoint keeps
    reply = api.call("PUT", f"/v1/volumes/{v}/files?path=/less", some)
    assert reply.status == 507 and reply.code == "no_space", reply
    api.ok("DELETE", f"/v1/volumes/{v}/checkpoints/{last}")
    put(api, v, "/less", some)
    api.delete(box)
    api.ok("DELETE", f"/v1/volumes/{v}")


def test_another_team_sees_none_of_it(api, volume, team):
    v = volume(size_mb=16)["id"]
    c = keep(api, v, name="mine")["id"]
    other = team(disk_mb=1000)
    for method, path, body in (("GET", "checkpoints", None), ("POST", "checkpoints", {}), ("GET", f"checkpoints/{c}", None),
                               ("DELETE", f"checkpoints/{c}", None), ("POST", "restore", {"checkpoint": c}),
                               ("POST", f"checkpoints/{c}/volumes", {})):
        other.refused(404, "volume_not_found", method, f"/v1/volumes/{v}/{path}", body)
    own = other.ok("POST", "/v1/volumes", {"size_mb": 16})["id"]
    other.refused(404, "checkpoint_not_found", "POST", f"/v1/volumes/{own}/restore", {"checkpoint": c})
    other.refused(404, "checkpoint_not_found", "POST", f"/v1/volumes/{own}/checkpoints/{c}/volumes", {})
    other.ok("DELETE", f"/v1/volumes/{own}")


def test_checkpoints_outlive_every_process(fresh):
    api = fresh.api
    api.ok("POST", "/v1/volumes", {"name": "v", "size_mb": 64})
    put(api, "v", "/a", b"0")
    keep(api, "v", name="zero")
    box = api.create(image="tiny", volumes=[{"volume": "v", "path": "/data"}])["id"]
    stop, answered = threading.Event(), []

    def work(kind):
        i = 0
        while not stop.is_set():
            i += 1
            try:
                if kind == "keep":
                    reply = api.call("POST", "/v1/volumes/v/checkpoints", {"name": f"n{i}"})
                else:
                    reply = api.call("POST", "/v1/volumes/v/checkpoints/zero/volumes", {"name": f"f{i}", "size_mb": 16})
                answered.extend([f"n{i}" if kind == "keep" else f"f{i}"] if reply.status == 201 else [])
            except (OSError, http.client.HTTPException):
                pass
    threads = [threading.Thread(target=work, args=(kind,)) for kind in ("keep", "fork")]
    for t in threads:
        t.start()
    for i in range(6):
        before = len(answered)
        until(lambda: len(answered) > before + 2)
        if i % 2:
            fresh.kill_everything()
            fresh.start()
        else:
            fresh.kill_keeper()
    stop.set()
    for t in threads:
        t.join()
    until(lambda: api.exec(box, "cat /data/a")["stdout"] == "0")  # nobody stands still for good
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    fresh.restart()
    kept = api.ok("GET", "/v1/volumes/v/checkpoints?limit=1000")["checkpoints"]
    made = api.ok("GET", "/v1/volumes?limit=1000")["volumes"]
    assert set(answered) <= {x["name"] for x in kept + made}
    for c in kept[:3] + kept[-3:]:
        restore(api, "v", c["id"])
        assert read(api, "v", "/a") == b"0"
    for f in made[:3] + made[-3:]:
        assert read(api, f["id"], "/a") == b"0"  # whole, or not there
    api.delete(box)
    for f in api.ok("GET", "/v1/volumes")["volumes"]:
        api.ok("DELETE", f"/v1/volumes/{f['id']}")
    until(lambda: not fresh.stored("volume-points"), "an empty storage")
