"""Volumes hold no subvolumes, leave nothing behind, and lead into no other sandbox."""
import fcntl
import json
import os
import subprocess
import uuid

import pytest

import harness
from harness import until
from test_volume_checkpoints import count_as_before_linux_6_7

# Requests of btrfs, by number: ENOTTY is the filter's answer, whatever the file.
IOCTLS = r"""
import errno, fcntl, json, os, sys
V1, V2 = bytearray(4096), bytearray(4096)
V1[8:13] = V2[56:61] = b"inner"
fd = os.open(sys.argv[1], os.O_RDONLY)
requests = {
    "subvol_create": (0x5000940E, V1), "subvol_create_v2": (0x50009418, V2), "snap_create": (0x50009401, V1),
    "snap_create_v2": (0x50009417, V2), "snap_destroy": (0x5000940F, V1), "subvol_setflags": (0x4008941A, bytearray(8)),
    "default_subvol": (0x40089413, bytearray(8)), "space_info": (0xC0109414, bytearray(16)),
    "fs_info": (0x8400941F, bytearray(1024)), "tree_search": (0xD0009411, bytearray(4096)),
    "ino_lookup": (0xD0009412, bytearray(4096)), "qgroup_limit": (0x8030942B, bytearray(48)),
    "trim": (0xC0185879, bytearray(24)), "freeze": (0xC0045877, bytearray(4))}
told = {}
for name, (number, args) in requests.items():
    try:
        fcntl.ioctl(fd, number, args)
        told[name] = "done"
    except OSError as e:
        told[name] = errno.errorcode[e.errno]
a = os.open(sys.argv[1] + "/a", os.O_RDWR | os.O_CREAT)
b = os.open(sys.argv[1] + "/b", os.O_RDWR | os.O_CREAT)
os.write(a, b"x" * 65536)
fcntl.ioctl(b, 0x40049409, a)  # FICLONE
told["reflink"] = os.pread(b, 3, 0).decode()
print(json.dumps(told))
"""


@pytest.fixture
def volume(api):
    made = []

    def make_one(**body):
        v = api.ok("POST", "/v1/volumes", {"name": "w" + uuid.uuid4().hex[:10], **body})
        made.append(v["id"])
        return v
    yield make_one
    for v in made:
        api.call("DELETE", f"/v1/volumes/{v}")


def test_a_sandbox_makes_no_subvolumes(api, volume, make):
    v = volume(size_mb=64)
    s = make(volumes=[{"volume": v["id"], "path": "/data"}])["id"]
    api.ok("PUT", f"/v1/sandboxes/{s}/files?path=/tmp/ioctls.py", IOCTLS.encode())
    for place in "/data", "/root":
        told = json.loads(api.out(s, f"python3 /tmp/ioctls.py {place}"))
        assert told.pop("reflink") == "xxx"
        assert set(told.values()) == {"ENOTTY"}, told


def btrfs(*args):
    subprocess.run(["btrfs", *map(str, args)], check=True, capture_output=True)


def make_read_only(subvolume):
    fd = os.open(subvolume, os.O_RDONLY)
    fcntl.ioctl(fd, 0x4008941A, (2).to_bytes(8, "little"))  # BTRFS_IOC_SUBVOL_SETFLAGS
    os.close(fd)


def nest(outer):
    """Subvolumes as a sandbox could make them once: side by side, inside of one another, read-only."""
    for path in "one", "two", "two/deep", "two/deep/er":
        btrfs("subvolume", "create", outer / path)
        (outer / path / "data").write_bytes(os.urandom(8 << 20))
    make_read_only(outer / "two/deep/er")


def free_bytes(daemon):
    btrfs("filesystem", "sync", daemon.pool())
    told = os.statvfs(daemon.pool())
    return told.f_bfree * told.f_frsize


def test_subvolumes_in_a_volume_go_with_it(fresh):
    api = fresh.api
    api.ok("POST", "/v1/volumes", {"name": "first", "size_mb": 64})  # what the first one takes stays taken
    api.ok("DELETE", "/v1/volumes/first")
    before = free_bytes(fresh)
    v = api.ok("POST", "/v1/volumes", {"name": "old", "size_mb": 64})
    nest(fresh.pool("volumes", v["id"]))
    make_read_only(fresh.pool("volumes", v["id"]))
    assert free_bytes(fresh) < before - (30 << 20)
    api.ok("DELETE", "/v1/volumes/old")
    until(lambda: not fresh.stored("trash"), "an empty trash")
    until(lambda: free_bytes(fresh) > before - (4 << 20), "the space", deadline=60)


@pytest.mark.parametrize("full", [False, True], ids=["", "full quotas"])
def test_leftovers_of_an_earlier_version_go_at_the_start(fresh, full):
    if full:
        count_as_before_linux_6_7(fresh)
    before = free_bytes(fresh)
    v = fresh.api.ok("POST", "/v1/volumes", {"name": "old", "size_mb": 64})["id"]
    btrfs("subvolume", "create", fresh.pool("trash", "leftover"))
    nest(fresh.pool("trash", "leftover"))
    nest(fresh.pool("volumes", v))
    fresh.restart()
    until(lambda: not fresh.stored("trash"), "an empty trash")
    # What lies in a volume is its user's: it stays, and counts.
    assert fresh.pool("volumes", v, "two/deep/er/data").stat().st_size == 8 << 20
    until(lambda: fresh.api.ok("GET", "/v1/volumes/old")["used_bytes"] > 30 << 20, "the volume's use")
    if full:  # where only the next start would count it, it does not grow
        with pytest.raises(OSError), open(fresh.pool("volumes", v, "two/deep/data"), "ab") as f:
            f.write(bytes(1 << 20))
            os.fsync(f.fileno())
    fresh.api.ok("DELETE", "/v1/volumes/old")
    until(lambda: not fresh.stored("trash"), "an empty trash")
    until(lambda: free_bytes(fresh) > before - (4 << 20), "the space", deadline=60)


REFLINK = r"""
import errno, fcntl, os, sys
a, b = os.open("/a/data", os.O_RDONLY), os.open("/b/data", os.O_RDWR | os.O_CREAT)
def tried(what):
    try:
        what()
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
print(tried(lambda: fcntl.ioctl(b, 0x40049409, a)),  # FICLONE
      tried(lambda: fcntl.ioctl(b, 0x4020940D, a.to_bytes(8, "little") + bytes(24))),  # FICLONERANGE
      tried(lambda: os.copy_file_range(a, b, 4096)))
"""


def test_what_a_volume_holds_is_not_shared_into_another(careful):
    """A shared extent would stay when the first volume goes, and count for nobody."""
    api, keep = careful.api, 24 << 20
    for name in "first", "second":
        api.ok("POST", "/v1/volumes", {"name": name, "size_mb": 64})
    mounts = [{"volume": "first", "path": "/a"}, {"volume": "second", "path": "/b"}]
    box = api.create(volumes=mounts)["id"]
    api.ok("PUT", f"/v1/sandboxes/{box}/files?path=/tmp/reflink.py", REFLINK.encode())
    api.out(box, f"head -c {keep} /dev/urandom > /a/data")
    simple = api.ok("GET", "/v1/host")["features"].get("simple_quota")
    for _ in "made", "started again":
        told = api.out(box, "python3 /tmp/reflink.py").split()
        if simple:
            assert told == ["ENOTSUP", "ENOTSUP", "ENOSYS"], told
        api.ok("POST", f"/v1/sandboxes/{box}/stop")
        api.ok("POST", f"/v1/sandboxes/{box}/start")
    assert api.out(box, "cp /a/data /b/data && cmp /a/data /b/data && rm /a/data && echo same") == "same\n"
    until(lambda: api.ok("GET", "/v1/volumes/second")["used_bytes"] >= keep, "the second volume's use", deadline=60)
    api.delete(box)


# Listens in a volume, tells so, and passes a descriptor to whoever comes.
LISTEN = r"""
import os, select, socket
kinds = {"stream": socket.SOCK_STREAM, "seqpacket": socket.SOCK_SEQPACKET, "dgram": socket.SOCK_DGRAM}
socks = {}
for name, kind in kinds.items():
    s = socks[name] = socket.socket(socket.AF_UNIX, kind)
    s.bind("/data/" + name)
    os.chmod("/data/" + name, 0o777)
    if name != "dgram":
        s.listen(16)
print("ready", flush=True)
while True:
    for s in select.select(list(socks.values()), [], [])[0]:
        if s is socks["dgram"]:
            print("got", s.recv(10).decode(), flush=True)
            continue
        c, _ = s.accept()
        socket.send_fds(c, [b"x"], [0])
        c.close()
"""

# Tries every way to a socket's path and prints each result.
CONNECT = r"""
import errno, json, os, socket, sys
kinds = {"stream": socket.SOCK_STREAM, "seqpacket": socket.SOCK_SEQPACKET, "dgram": socket.SOCK_DGRAM}
os.chdir("/data")
fd = os.open("/data", os.O_RDONLY)
told = {}
for name, kind in kinds.items():
    os.path.lexists("/tmp/link-" + name) or os.symlink("/data/" + name, "/tmp/link-" + name)
    for way in "/data/" + name, name, "/tmp/link-" + name, f"/proc/self/fd/{fd}/{name}", f"/proc/self/cwd/{name}":
        s = socket.socket(socket.AF_UNIX, kind)
        key = name + " " + way.replace(str(fd), "N")
        try:
            s.connect(way)
            told[key] = "sent" if name == "dgram" and s.send(b"hello") else len(socket.recv_fds(s, 10, 4)[1])
        except OSError as e:
            told[key] = errno.errorcode[e.errno]
        if name == "dgram":
            try:
                told[key + " sendto"] = "sent" if socket.socket(socket.AF_UNIX, kind).sendto(b"hello", way) else 0
            except OSError as e:
                told[key + " sendto"] = errno.errorcode[e.errno]
print(json.dumps(told))
"""


@pytest.fixture
def careful(tiny_tar):
    """A daemon as it is by default: volumes are shared where sockets in them lead nowhere."""
    with harness.running("--share-volumes", "fenced",
                         images={"tiny": tiny_tar, "base": harness.base_image()}) as d:
        yield d


def connect(api, who):
    api.ok("PUT", f"/v1/sandboxes/{who}/files?path=/tmp/connect.py", CONNECT.encode())
    return json.loads(api.out(who, "python3 /tmp/connect.py"))


def test_sockets_in_a_volume_lead_nowhere(careful):
    api = careful.api
    api.ok("POST", "/v1/volumes", {"name": "v", "size_mb": 64})
    a = api.create(volumes=[{"volume": "v", "path": "/data"}])["id"]
    api.ok("PUT", f"/v1/sandboxes/{a}/files?path=/tmp/listen.py", LISTEN.encode())
    n = api.start(a, "exec python3 /tmp/listen.py")["process"]
    until(lambda: api.ok("GET", f"/v1/sandboxes/{a}/processes/{n}") and
          "dgram" in api.out(a, "ls /data"), "sockets")
    own = connect(api, a)
    assert set(own.values()) == {1, "sent"}, own  # inside of one sandbox they work
    for read_only in False, True:
        spec = {"volumes": [{"volume": "v", "path": "/data", "read_only": read_only}]}
        if api.ok("GET", "/v1/host")["features"]["volume_fence"]:
            b = api.create(**spec)["id"]
            told = connect(api, b)
            assert set(told.values()) == {"EPERM"}, told
            careful.kill_keeper()  # the fence does not depend on who raised it
            assert set(connect(api, b).values()) == {"EPERM"}
            api.delete(b)
        else:
            api.refused(409, "volume_in_use", "POST", "/v1/sandboxes", spec)
    api.delete(a)
    api.ok("DELETE", "/v1/volumes/v")


def test_pipes_in_a_volume_cannot_be_opened(careful):
    """They carry bytes even from a sandbox that may only read the volume."""
    api = careful.api
    api.ok("POST", "/v1/volumes", {"name": "v", "size_mb": 64})
    box = api.create(volumes=[{"volume": "v", "path": "/data"}])["id"]
    api.out(box, "mkfifo /data/pipe /tmp/pipe")
    assert api.out(box, "echo through > /tmp/pipe & cat /tmp/pipe") == "through\n"  # its own
    if not api.ok("GET", "/v1/host")["features"]["volume_fence"]:
        return  # the volume is in one sandbox at a time
    spec = {"volumes": [{"volume": "v", "path": "/data", "read_only": True}]}
    for who in box, api.create(**spec)["id"]:
        for way in "cat /data/pipe", "echo x > /data/pipe", "echo x 1<> /data/pipe":
            done = api.exec(who, way)
            assert done["exit_code"] and "Operation not permitted" in done["stderr"], (way, done)
    assert api.out(box, "rm /data/pipe && ls -A /data") == ""


def test_a_volume_that_is_not_fenced_is_in_one_sandbox_at_a_time(careful):
    api = careful.api
    if api.ok("GET", "/v1/host")["features"]["volume_fence"]:
        return  # it may be in several
    v = [{"volume": api.ok("POST", "/v1/volumes", {"name": "v", "size_mb": 64})["id"], "path": "/data"}]
    a = api.create(image="tiny", volumes=v)["id"]
    api.out(a, "echo kept > /data/x")
    refused = api.refused(409, "volume_in_use", "POST", "/v1/sandboxes", {"image": "tiny", "volumes": v})
    assert "--share-volumes" in str(refused)
    api.ok("POST", f"/v1/sandboxes/{a}/stop")
    b = api.create(image="tiny", volumes=v)["id"]
    assert api.out(b, "cat /data/x") == "kept\n"
    api.refused(409, "volume_in_use", "POST", f"/v1/sandboxes/{a}/start")
    careful.restart()
    api.refused(409, "volume_in_use", "POST", f"/v1/sandboxes/{a}/start")
    api.delete(b)
    api.ok("POST", f"/v1/sandboxes/{a}/start")
    assert api.out(a, "cat /data/x") == "kept\n"
    api.delete(a)
    api.ok("DELETE", "/v1/volumes/v")
