"""Volumes: files that outlive sandboxes, seen by several at once, reached without any."""
import io
import os
import signal
import tarfile
import threading
import uuid
from urllib.parse import quote

import pytest

from harness import until


def fresh_name():
    return "v" + uuid.uuid4().hex[:10]


@pytest.fixture
def volume(api):
    made = []

    def make_one(**body):
        v = api.ok("POST", "/v1/volumes", {"name": fresh_name(), **body})
        made.append(v["id"])
        return v
    yield make_one
    for v in made:
        api.call("DELETE", f"/v1/volumes/{v}")


def put(api, v, path, data, **query):
    more = "".join(f"&{k}={quote(str(x))}" for k, x in query.items())
    return api.ok("PUT", f"/v1/volumes/{v}/files?path={quote(path)}{more}", data)


def read(api, v, path):
    reply = api.call("GET", f"/v1/volumes/{v}/files?path={quote(path)}")
    assert reply.status == 200, reply
    return reply.body


def test_a_volume_comes_and_goes(api, volume):
    name = fresh_name()
    v = volume(name=name, size_mb=64)
    assert (v["name"], v["size_mb"], v["sandboxes"]) == (name, 64, 0)
    assert api.ok("GET", f"/v1/volumes/{name}")["id"] == v["id"]
    assert v["id"] in [x["id"] for x in api.ok("GET", "/v1/volumes")["volumes"]]
    api.refused(409, "name_taken", "POST", "/v1/volumes", {"name": name})
    assert api.ok("PATCH", f"/v1/volumes/{name}", {"size_mb": 128})["size_mb"] == 128
    assert api.ok("GET", f"/v1/volumes/{name}")["size_mb"] == 128
    api.ok("DELETE", f"/v1/volumes/{name}")
    for method in ("GET", "DELETE"):
        api.refused(404, "volume_not_found", method, f"/v1/volumes/{v['id']}")
    api.refused(404, "volume_not_found", "GET", f"/v1/volumes/{v['id']}/files?path=/x")


@pytest.mark.parametrize("body", [
    {"name": "a b"}, {"name": "x" * 64}, {"name": "a" * 20}, {"name": ""}, {"size_mb": 1}, {"size_mb": 1e9},
    {"size_mb": "64"}, {"fish": 1}])
def test_odd_volumes_are_refused(api, body):
    assert api.call("POST", "/v1/volumes", body).status == 400


@pytest.mark.parametrize("path", ["/", "relative", "/proc", "/proc/x", "/sys/a", "/dev", "/a/../..", "/x" * 200,
                                  "/a\nb", ""])
def test_odd_places_are_refused(api, volume, path):
    v = volume(size_mb=16)
    reply = api.call("POST", "/v1/sandboxes", {"image": "tiny", "volumes": [{"volume": v["id"], "path": path}]})
    assert reply.status == 400, reply


def test_sandboxes_share_a_volume_and_it_outlives_them(api, volume):
    v = volume(size_mb=64)
    a = api.create(image="tiny", volumes=[{"volume": v["name"], "path": "/data"}])
    assert a["volumes"] == [{"volume": v["name"], "id": v["id"], "path": "/data", "read_only": False}]
    b = api.create(image="tiny", volumes=[{"volume": v["id"], "path": "/mnt/deep/er"}])
    ro = api.create(image="tiny", volumes=[{"volume": v["id"], "path": "/ro", "read_only": True}])
    api.out(a["id"], "echo from-a > /data/x; chown 1000:1000 /data/x; mkdir /data/d")
    assert api.out(b["id"], "cat /mnt/deep/er/x; stat -c %u:%g /mnt/deep/er/x") == "from-a\n1000:1000\n"
    api.out(b["id"], "echo from-b > /mnt/deep/er/d/y")
    assert api.out(ro["id"], "cat /ro/d/y") == "from-b\n"
    refused = api.exec(ro["id"], "mount -o remount,bind,rw /ro 2>/dev/null; echo no > /ro/z")
    assert refused["exit_code"] != 0 and "Read-only" in refused["stderr"]
    # nobody but root of the cell may be needed to write, and nothing in it raises rights
    assert "nosuid" in api.out(a["id"], "grep ' /data ' /proc/mounts")
    api.out(a["id"], "echo user > /data/u", user="1000:1000")
    # one that is stopped has it again when it starts
    api.ok("POST", f"/v1/sandboxes/{a['id']}/stop")
    api.ok("POST", f"/v1/sandboxes/{a['id']}/start")
    assert api.out(a["id"], "cat /data/d/y") == "from-b\n"
    assert api.ok("GET", f"/v1/volumes/{v['id']}")["sandboxes"] == 3
    api.refused(409, "volume_in_use", "DELETE", f"/v1/volumes/{v['id']}")
    for s in (a, b, ro):
        api.delete(s["id"])
    assert read(api, v["id"], "/d/y") == b"from-b\n"
    api.ok("DELETE", f"/v1/volumes/{v['id']}")


def test_volumes_below_one_another_and_through_links(api, volume):
    outer, inner = volume(size_mb=16), volume(size_mb=16)
    s = api.create(image="tiny", volumes=[{"volume": inner["id"], "path": "/a/b"}, {"volume": outer["id"], "path": "/a"}])
    api.out(s["id"], "echo i > /a/b/i; echo o > /a/o")
    assert read(api, inner["id"], "/i") == b"i\n"
    assert read(api, outer["id"], "/o") == b"o\n"
    api.delete(s["id"])
    same = [{"volume": outer["id"], "path": "/a"}, {"volume": inner["id"], "path": "/x/../a/"}]
    api.refused(400, "invalid_field", "POST", "/v1/sandboxes", {"image": "tiny", "volumes": same})
    api.refused(404, "volume_not_found", "POST", "/v1/sandboxes",
                {"image": "tiny", "volumes": [{"volume": "nonesuch", "path": "/a"}]})


def test_the_limit_holds(api, volume):
    v = volume(size_mb=16)
    s = api.create(image="tiny", volumes=[{"volume": v["id"], "path": "/data"}])
    full = api.exec(s["id"], "dd if=/dev/zero of=/data/big bs=1M count=40 && sync")
    assert full["exit_code"] != 0
    reply = api.call("PUT", f"/v1/volumes/{v['id']}/files?path=/more", b"x" * (20 << 20))
    assert reply.status == 507 and reply.code == "no_space", reply
    api.out(s["id"], "rm /data/big; sync")
    api.out(s["id"], "dd if=/dev/zero of=/elsewhere bs=1M count=20")  # its own disk is another matter
    api.ok("PATCH", f"/v1/volumes/{v['id']}", {"size_mb": 64})
    until(lambda: api.exec(s["id"], "dd if=/dev/zero of=/data/big bs=1M count=30 && sync")["exit_code"] == 0)
    until(lambda: api.ok("GET", f"/v1/volumes/{v['id']}")["used_bytes"] > 25 << 20)
    api.delete(s["id"])


def test_files_without_a_sandbox(api, volume):
    v = volume(size_mb=64)["id"]
    files = f"/v1/volumes/{v}/files"
    assert put(api, v, "/dir/a.txt", b"hello", mode="600")["mode"] == "0600"
    assert put(api, v, "relative", b"r")["path"] == "/relative"
    api.ok("POST", f"{files}/symlink", {"path": "/out", "target": "../../../../etc/passwd"})
    api.ok("POST", f"{files}/symlink", {"path": "/up", "target": "/../../proc/1/environ"})
    for link in ("/out", "/up", "/../../etc/passwd", "/proc/self/status"):
        api.refused(404, "file_not_found", "GET", f"{files}?path={quote(link)}")
    api.ok("POST", f"{files}/symlink", {"path": "/abs", "target": "/dir/a.txt"})
    assert read(api, v, "/abs") == b"hello"  # the volume is the root
    assert api.ok("POST", f"{files}/chown", {"path": "/dir/a.txt", "owner": "1000:1000"})["uid"] == 1000
    assert api.ok("POST", f"{files}/chmod", {"path": "/dir/a.txt", "mode": "640"})["mode"] == "0640"
    api.ok("POST", f"{files}/copy", {"from": "/dir", "to": "/copy", "recursive": True})
    api.ok("POST", f"{files}/move", {"from": "/copy", "to": "/moved"})
    listed = api.ok("GET", f"{files}/list?path=/&depth=5")["entries"]
    assert {e["path"] for e in listed} == {"/dir", "/dir/a.txt", "/relative", "/out", "/up", "/abs", "/moved", "/moved/a.txt"}
    archive = api.call("GET", f"{files}/archive?path=/")
    assert archive.status == 200
    names = tarfile.open(fileobj=io.BytesIO(archive.body)).getnames()
    assert any(n.endswith("dir/a.txt") for n in names), names
    assert api.ok("PUT", f"{files}/archive?path=/again", archive.body)["files"] >= 3
    assert read(api, v, "/again/moved/a.txt") == b"hello"
    api.ok("DELETE", f"{files}?path=/dir&recursive=true")
    api.refused(404, "file_not_found", "GET", f"{files}/stat?path=/dir")
    big = bytes(range(256)) * 4096 * 4
    put(api, v, "/big", big)
    assert read(api, v, "/big") == big
    part = api.call("GET", f"{files}?path=/big", headers={"Range": "bytes=256-511"})
    assert part.status == 206 and part.body == bytes(range(256))


def test_another_team_sees_nothing_of_it(api, volume, team):
    mine = volume(size_mb=16)
    other = team(disk_mb=1000)
    for method, path, body in (("GET", "", None), ("DELETE", "", None), ("PATCH", "", {"size_mb": 32}),
                               ("GET", "/files?path=/", None), ("PUT", "/files?path=/x", b"x"),
                               ("GET", "/files/list?path=/", None), ("POST", "/files/mkdir", {"path": "/x"})):
        for who in (mine["id"], mine["name"]):
            other.refused(404, "volume_not_found", method, f"/v1/volumes/{who}{path}", body)
    assert other.ok("GET", "/v1/volumes")["volumes"] == []
    other.refused(404, "volume_not_found", "POST", "/v1/sandboxes",
                  {"image": "tiny", "disk_mb": 100, "volumes": [{"volume": mine["id"], "path": "/a"}]})
    # a name is the team's own; its disk counts
    same = other.ok("POST", "/v1/volumes", {"name": mine["name"], "size_mb": 600})
    other.refused(403, "quota_exceeded", "POST", "/v1/volumes", {"size_mb": 600})
    other.refused(403, "quota_exceeded", "PATCH", f"/v1/volumes/{same['id']}", {"size_mb": 1200})
    other.refused(403, "quota_exceeded", "POST", "/v1/sandboxes", {"image": "tiny", "disk_mb": 600})
    api.refused(409, "team_not_empty", "DELETE", f"/v1/teams/{other.team}")
    other.ok("DELETE", f"/v1/volumes/{same['id']}")


@pytest.fixture
def team(api):
    made = []

    def make_one(**quotas):
        name = fresh_name()
        api.ok("POST", "/v1/teams", {"name": name, **({"quotas": quotas} if quotas else {})})
        made.append(name)
        key = api.ok("POST", "/v1/keys", {"team": name, "name": "k"})["key"]
        other = api.with_key(key)
        other.team = name
        return other
    yield make_one
    for name in made:
        api.ok("DELETE", f"/v1/teams/{name}")


def test_nothing_is_lost_when_everything_is_killed(fresh):
    api = fresh.api
    v = api.ok("POST", "/v1/volumes", {"name": "kept", "size_mb": 64})
    put(api, "kept", "/before", b"1")
    s = api.create(image="tiny", volumes=[{"volume": "kept", "path": "/data"}])["id"]
    api.out(s, "echo 2 > /data/inside")
    fresh.kill_keeper()
    until(lambda: api.call("PUT", "/v1/volumes/kept/files?path=/during", b"3").status == 200)
    fresh.kill_everything()
    fresh.start()
    assert api.out(s, "cat /data/before /data/inside") == "12\n"
    assert read(api, "kept", "/inside") == b"2\n" and read(api, "kept", "/during") == b"3"
    assert api.ok("GET", "/v1/volumes/kept")["id"] == v["id"]
    api.ok("POST", f"/v1/sandboxes/{s}/stop")
    api.ok("POST", f"/v1/sandboxes/{s}/start")
    assert api.out(s, "cat /data/inside") == "2\n"
    api.delete(s)
    api.ok("DELETE", "/v1/volumes/kept")


def test_makes_and_removes_that_are_cut_leave_no_half(fresh):
    api, told = fresh.api, set()
    for i in range(6):
        threads = [threading.Thread(target=lambda n=n: _try(api, n, told)) for n in (f"cut{i}a", f"cut{i}b")]
        for t in threads:
            t.start()
        fresh.kill_keeper() if i % 2 else fresh.kill()
        if i % 2 == 0:
            fresh.start()
        for t in threads:
            t.join()
    _try(api, "whole", told)
    left = until(lambda: api.ok("GET", "/v1/volumes"))["volumes"]
    assert "whole" in told and told <= {v["name"] for v in left}  # what was confirmed is there
    for v in left:
        put(api, v["id"], "/x", b"whole")
        assert read(api, v["id"], "/x") == b"whole"
        api.ok("DELETE", f"/v1/volumes/{v['id']}")
    fresh.restart()
    assert api.ok("GET", "/v1/volumes")["volumes"] == []


def _try(api, name, told):
    try:
        if api.call("POST", "/v1/volumes", {"name": name, "size_mb": 16}).status == 201:
            told.add(name)
        api.call("PUT", f"/v1/volumes/{name}/files?path=/f", b"f")
    except OSError:
        pass


def test_the_cell_of_a_volume_that_dies_is_made_again(fresh):
    api = fresh.api
    api.ok("POST", "/v1/volumes", {"name": "v", "size_mb": 16})
    put(api, "v", "/x", b"1")
    inits = [int(x.read_text().split()[0]) for x in (fresh.run / "cells").glob("*/record")]
    assert inits
    for pid in inits:
        os.kill(pid, signal.SIGKILL)
    until(lambda: api.call("GET", "/v1/volumes/v/files?path=/x").body == b"1")
