"""Many files in one call: multipart, tar, zip; up and down."""
import contextlib
import gzip
import io
import os
import subprocess
import tarfile
import zipfile

import pytest

from filelib import Files, finish, form_of


@pytest.fixture
def files(api, tiny):
    api.out(tiny, "mkdir -p /srv")
    return Files(api, tiny)


def tar_of(members, mode="w", **kwargs):
    """members: {name: bytes} or TarInfo objects with a body."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, **kwargs) as t:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_of(members, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as z:
        for name, data in members.items():
            z.writestr(name, data)
    return out.getvalue()


def zstd(data, *args):
    return subprocess.run(["zstd", "-q", "-c", *args], input=data, capture_output=True,
                          check=True, timeout=60).stdout


TREE = {"a.txt": b"alpha\n", "d/b.bin": bytes(range(256)) * 300, "d/e/empty": b""}


# -- down

def tree(api, who):
    files = Files(api, who)
    for name, data in TREE.items():
        files.put("/srv/t/" + name, data, mode="0640")
    api.out(who, "cd /srv/t; ln -s a.txt link; ln a.txt hard; mkdir bare; mkfifo pipe")
    return files


@pytest.mark.parametrize("form", ["tar", "tar.gz", "tar.zst"])
def test_a_directory_comes_as_a_tar(api, tiny, form):
    files = tree(api, tiny)
    reply = files.call("GET", "/archive", "/srv/t", format=form)
    assert reply.status == 200 and f't.{form}"' in reply.headers["Content-Disposition"]
    data = {"tar": lambda d: d, "tar.gz": gzip.decompress, "tar.zst": lambda d: zstd(d, "-d")}
    with tarfile.open(fileobj=io.BytesIO(data[form](reply.body))) as t:
        members = {m.name.rstrip("/"): m for m in t.getmembers()}
        got = {n: t.extractfile(m).read() for n, m in members.items() if m.isfile()}
    for name, want in TREE.items():
        assert got[name] == want and members[name].mode & 0o7777 == 0o640
    assert members["link"].issym() and members["link"].linkname == "a.txt"
    pair = {members["a.txt"].type, members["hard"].type}
    assert tarfile.LNKTYPE in pair  # two names, one file
    assert members["bare"].isdir() and members["pipe"].isfifo()


def test_a_directory_comes_as_a_zip(api, tiny):
    files = tree(api, tiny)
    reply = files.call("GET", "/archive", "/srv/t", format="zip")
    with zipfile.ZipFile(io.BytesIO(reply.body)) as z:
        assert z.testzip() is None
        for name, want in {**TREE, "hard": TREE["a.txt"]}.items():
            assert z.read(name) == want
        assert "pipe" not in z.namelist()


def test_one_file_as_an_archive(files):
    files.put("/srv/one", b"1")
    with tarfile.open(fileobj=io.BytesIO(files.call("GET", "/archive", "/srv/one").body)) as t:
        assert t.getnames() == ["one"] and t.extractfile("one").read() == b"1"


def test_archives_that_cannot_be(files):
    files.refused(404, "file_not_found", "GET", "/archive", "/nowhere")
    files.refused(400, "invalid_query", "GET", "/archive", "/etc", format="rar")
    files.refused(400, "invalid_query", "GET", "/archive", "/etc", format="auto")
    files.refused(403, "permission_denied", "GET", "/archive", "/root", user="user")


# -- up

@pytest.mark.parametrize("form", ["tar", "tar.gz", "tar.zst", "zip"])
@pytest.mark.parametrize("asked", [True, False])
def test_an_archive_is_unpacked(api, tiny, files, form, asked):
    body = {"tar": lambda: tar_of(TREE), "tar.gz": lambda: gzip.compress(tar_of(TREE)),
            "tar.zst": lambda: zstd(tar_of(TREE)), "zip": lambda: zip_of(TREE)}[form]()
    query = {"format": form} if asked else {}
    got = files.ok("PUT", "/archive", "/srv/in", body, **query)
    assert got == {"files": 3, "bytes": sum(map(len, TREE.values()))}
    for name, want in TREE.items():
        assert files.get("/srv/in/" + name) == want


def test_a_tar_keeps_modes_times_links(api, tiny, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        def add(name, kind, **more):
            info = tarfile.TarInfo(name)
            info.type = kind
            data = more.pop("data", b"")
            info.size = len(data)
            for k, v in more.items():
                setattr(info, k, v)
            t.addfile(info, io.BytesIO(data))
        add("./", tarfile.DIRTYPE, mode=0o755)
        add("./bin/", tarfile.DIRTYPE, mode=0o711)
        add("./bin/run", tarfile.REGTYPE, mode=0o4755, mtime=1_500_000_000, data=b"#!/bin/sh\n")
        add("./bin/also", tarfile.LNKTYPE, linkname="./bin/run")
        add("./sym", tarfile.SYMTYPE, linkname="/etc/passwd")
        add("./pipe", tarfile.FIFOTYPE, mode=0o600)
    files.ok("PUT", "/archive", "/srv/k", out.getvalue())
    run = files.stat("/srv/k/bin/run")
    assert run["mode"] == "0755" and run["links"] == 2  # nobody's setuid comes along
    assert run["modified_at"].startswith("2017-07-14T02:40:00")
    assert files.stat("/srv/k/bin")["mode"] == "0711"
    assert files.stat("/srv/k/bin/also")["inode"] == run["inode"]
    assert files.ok("GET", "/readlink", "/srv/k/sym")["target"] == "/etc/passwd"
    assert files.stat("/srv/k/pipe")["type"] == "fifo"


@pytest.mark.parametrize("pack", [tar_of, lambda t: gzip.compress(tar_of(t)), zip_of], ids=["tar", "tar.gz", "zip"])
def test_bytes_behind_an_archive_are_read_and_dropped(files, pack):
    # More than any buffer on the way holds: tar pads, and so do block devices.
    files.ok("PUT", "/archive", "/srv/padded", pack(TREE) + bytes(8 << 20))
    assert files.get("/srv/padded/a.txt") == TREE["a.txt"]


def test_what_was_packed_unpacks_to_the_same(api, tiny):
    files = tree(api, tiny)
    for form in ("tar", "tar.gz", "tar.zst"):
        packed = files.call("GET", "/archive", "/srv/t", format=form).body
        files.ok("PUT", "/archive", f"/srv/{form}", packed)
        assert api.exec(tiny, f"cd /srv/t; for f in $(find . -type f); do "
                        f"cmp $f /srv/{form}/$f || exit 1; done")["exit_code"] == 0


def test_an_archive_belongs_to_whom_it_is_for(api, tiny, files):
    home = api.out(tiny, "echo ~user").strip()
    api.out(tiny, f"mkdir -p {home}; chown user {home}")
    files.ok("PUT", "/archive", "in", tar_of({"x": b"1"}), user="user")
    assert files.stat(home + "/in/x")["owner"] == "user"
    files.refused(403, "permission_denied", "PUT", "/archive", "/root/in", tar_of({"x": b"1"}),
                  user="user")


def test_zip_entries_whose_size_comes_later(files):
    """What `zip -` writes to a pipe: sizes follow the data."""
    out = io.BytesIO()

    class Pipe(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            return out.write(data)
    with zipfile.ZipFile(Pipe(), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in TREE.items():
            z.writestr(name, data)
    files.ok("PUT", "/archive", "/srv/z", out.getvalue())
    assert files.get("/srv/z/d/b.bin") == TREE["d/b.bin"]


def test_no_archive_at_all(files):
    for body in (b"", b"hello", os.urandom(5000), gzip.compress(b"not a tar" * 1000),
                 tar_of(TREE)[:3000]):
        files.refused(400, "invalid_archive", "PUT", "/archive", "/srv/bad", body)
    files.refused(400, "invalid_archive", "PUT", "/archive", "/srv/bad", zip_of(TREE), format="tar")
    files.refused(400, "invalid_query", "PUT", "/archive", "/srv/bad", b"", format="rar")
    files.refused(400, "invalid_query", "PUT", "/archive", None, b"")


@pytest.mark.timeout(300)
def test_a_large_tree_both_ways_in_little_memory(api, daemon, make):
    """300 MB through a daemon that grows by far less."""
    files = Files(api, make(image="tiny", disk_mb=2048)["id"])

    def peak():
        text = open(f"/proc/{daemon.process.pid}/status").read()
        return int(text.split("VmHWM:")[1].split()[0]) * 1024
    before = peak()
    piece = os.urandom(1 << 20)
    connection = files.raw("PUT", "/archive", "/srv/big", {"Transfer-Encoding": "chunked"})

    class Chunked(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            data = bytes(data)
            connection.send(b"%x\r\n%s\r\n" % (len(data), data) if data else b"")
            return len(data)
    with tarfile.open(fileobj=Chunked(), mode="w|", bufsize=1 << 20) as t:
        for i in range(30):
            info = tarfile.TarInfo(f"f{i}")
            info.size = 10 << 20
            t.addfile(info, io.BytesIO(piece * 10))
    connection.send(b"0\r\n\r\n")
    assert finish(connection).json == {"files": 30, "bytes": 300 << 20}
    connection, response = api.open("GET", files.url("/archive", "/srv/big", format="tar"))
    with contextlib.closing(connection), tarfile.open(fileobj=response, mode="r|") as t:
        total = sum(len(t.extractfile(m).read()) for m in t)
    assert total == 300 << 20
    assert peak() - before < 64 << 20


# -- bulk

def test_many_files_in_one_form(api, tiny, files):
    home = files.stat(".")["path"]
    body, headers = form_of([("/srv/b/one", b"1"), ("/srv/b/two words", b"22", "0755"),
                             ("here/three", b"\r\n--x\r\n"), ("/srv/b/empty", b"")])
    got = files.ok("POST", "/write", None, body, headers)
    assert (got["files"], got["bytes"]) == (4, 10)
    assert got["entries"][0] == {"path": "/srv/b/one", "size": 1} and len(got["entries"]) == 4
    assert files.get("/srv/b/one") == b"1"
    assert files.stat("/srv/b/two words")["mode"] == "0755"
    assert files.get(home + "/here/three") == b"\r\n--x\r\n"
    assert files.get("/srv/b/empty") == b""
    body, headers = form_of([("rel", b"r")])
    files.ok("POST", "/write", "/srv/under", body, headers)
    assert files.get("/srv/under/rel") == b"r"
    files.ok("POST", "/write", None, gzip.compress(body), {**headers, "Content-Encoding": "gzip"})
    assert files.get(home + "/rel") == b"r"


def test_many_files_in_one_tar(files):
    got = files.ok("POST", "/write", None, tar_of({"srv/x/1": b"a", "srv/x/2": b"bb"}),
                   {"Content-Type": "application/x-tar"})
    assert (got["files"], got["bytes"]) == (2, 3)
    assert [e["size"] for e in got["entries"]] == [1, 2]
    assert files.get("/srv/x/2") == b"bb"
    files.ok("POST", "/write", "/srv/y", gzip.compress(tar_of({"1": b"c"})),
             {"Content-Type": "application/x-tar", "Content-Encoding": "gzip"})
    assert files.get("/srv/y/1") == b"c"


def test_forms_that_cannot_be(api, tiny, files):
    def refused(code, body, headers, status=400, **query):
        files.refused(status, code, "POST", "/write", None, body, headers, **query)
    body, headers = form_of([("/srv/ok", b"1")])
    refused("invalid_request", body, {"Content-Type": "text/plain"})
    refused("invalid_request", body, {"Content-Type": "multipart/form-data"})
    refused("invalid_request", body[:-8], headers)
    refused("invalid_request", b"", headers)
    refused("invalid_path", *form_of([("/srv/../etc/x", b"1")]))
    refused("invalid_request", *form_of([("/srv/m", b"1", "rwx")]))
    refused("invalid_request", body.replace(b'; filename="/srv/ok"', b""), headers)
    refused("is_a_directory", *form_of([("/srv", b"1")]))
    refused("permission_denied", *form_of([("/usr/x", b"1")]), status=403, user="user")
    refused("user_not_found", body, headers, user="nobody-here")


def test_many_files_are_read_at_once(files):
    for name, data in TREE.items():
        files.put("/srv/r/" + name, data)
    paths = ["/srv/r/" + n for n in TREE]
    got = files.read_many(paths + ["/srv/none"])
    assert got == {**{"/srv/r/" + n: d for n, d in TREE.items()}, "/srv/none": "file_not_found"}
    assert files.read_many(["/srv/r/a.txt"]) == {"/srv/r/a.txt": b"alpha\n"}
    assert files.read_many(["/srv/none"]) == {"/srv/none": "file_not_found"}
    assert files.read_many(["/srv/r/a.txt", "/root/x"], user="user") == \
        {"/srv/r/a.txt": b"alpha\n", "/root/x": "permission_denied"}
    reply = files.call("POST", "/read", body={"paths": paths},
                       headers={"Accept": "application/x-tar"})
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as t:
        assert {"/" + m.name: t.extractfile(m).read() for m in t if m.isfile()} == \
            {"/srv/r/" + n: d for n, d in TREE.items()}
    files.refused(400, "missing_field", "POST", "/read", body={})
    files.refused(400, "invalid_field", "POST", "/read", body={"paths": [""]})
    files.refused(400, "invalid_field", "POST", "/read", body={"paths": ["/x"] * 10_001})


def test_two_thousand_files_both_ways(api, tiny, files):
    many = {f"/srv/many/{i % 40}/{i}": b"%d\n" % i * (i % 50) for i in range(2000)}
    body, headers = form_of(many.items())
    got = files.ok("POST", "/write", None, body, headers)
    assert got["files"] == 2000 and len(got["entries"]) == 2000
    assert api.out(tiny, "find /srv/many -type f | wc -l").strip() == "2000"
    assert files.read_many(many) == many
