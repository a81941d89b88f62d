"""Files of a sandbox: read, written, listed, changed."""
import gzip
import hashlib
import http.client
import io
import os
import socket
import subprocess

import pytest

from filelib import Files, finish
from harness import DEADLINE, until


@pytest.fixture
def files(api, tiny):
    return Files(api, tiny)


# -- bytes in and out

def test_a_file_is_written_and_read(api, tiny, files):
    e = files.put("/tmp/a.txt", b"hello\n")
    assert (e["name"], e["path"], e["type"], e["size"], e["mode"], e["permissions"]) == \
        ("a.txt", "/tmp/a.txt", "file", 6, "0644", "rw-r--r--")
    assert (e["uid"], e["gid"], e["owner"], e["links"], e["target"]) == (0, 0, "root", 1, None)
    assert e["etag"].startswith('"') and e["modified_at"].endswith("Z") and e["inode"] > 0
    assert api.out(tiny, ["cat", "/tmp/a.txt"]) == "hello\n"
    reply = files.call("GET", "", "/tmp/a.txt")
    assert (reply.status, reply.body) == (200, b"hello\n")
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["Content-Length"] == "6"
    assert reply.headers["ETag"] == files.stat("/tmp/a.txt")["etag"] == e["etag"]
    assert reply.headers["Accept-Ranges"] == "bytes" and reply.headers["Last-Modified"]


def test_new_is_201_and_replaced_is_200(files):
    assert files.call("PUT", "", "/tmp/n", b"1").status == 201
    assert files.call("PUT", "", "/tmp/n", b"2").status == 200
    assert files.get("/tmp/n") == b"2"


def test_parents_are_made_unless_told_not_to(files):
    files.put("/tmp/p/q/r/file", b"x")
    assert files.get("/tmp/p/q/r/file") == b"x"
    files.refused(404, "file_not_found", "PUT", "", "/tmp/no/file", b"x", parents="false")
    assert not files.exists("/tmp/no")


def test_relative_paths_are_in_the_users_home(api, tiny, files):
    assert files.put("notes.txt", b"x")["path"] == "/root/notes.txt"
    assert files.get("notes.txt") == b"x"
    home = files.put("mine.txt", b"y", user="user")
    assert home["path"] == api.out(tiny, "echo ~user").strip() + "/mine.txt"
    assert home["owner"] == "user"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 262144, 262145, 5_000_001])
def test_sizes_around_every_buffer(files, size):
    data = os.urandom(min(size, 65536)) * (size // 65536 + 1)
    data = data[:size]
    assert files.put("/tmp/size", data)["size"] == size
    assert files.get("/tmp/size") == data
    assert files.stat("/tmp/size")["size"] == size


def test_mode_is_kept_or_given(api, tiny, files):
    files.put("/tmp/s.sh", b"#!/bin/sh\necho 1\n", mode="0755")
    assert files.stat("/tmp/s.sh")["mode"] == "0755"
    files.put("/tmp/s.sh", b"#!/bin/sh\necho 2\n")
    assert files.stat("/tmp/s.sh")["mode"] == "0755"
    assert api.out(tiny, ["/tmp/s.sh"]) == "2\n"
    api.out(tiny, "chown 1000:1000 /tmp/s.sh")
    assert files.put("/tmp/s.sh", b"x", mode="600")["mode"] == "0600"
    assert files.stat("/tmp/s.sh")["uid"] == 1000
    for bad in ("abc", "0888", "77777", "-1", ""):
        files.refused(400, "invalid_query", "PUT", "", "/tmp/s.sh", b"x", mode=bad)


def test_append(files):
    files.put("/tmp/log", b"one\n", append="true")
    files.put("/tmp/log", b"two\n", append="true")
    assert files.get("/tmp/log") == b"one\ntwo\n"


def test_a_write_replaces_the_file_at_once(api, tiny, files):
    """A reader that has the old file open goes on with the old one; a link sees none of it."""
    files.put("/tmp/old", b"old")
    api.out(tiny, "ln /tmp/old /tmp/other")
    files.put("/tmp/old", b"newer")
    assert (files.get("/tmp/old"), files.get("/tmp/other")) == (b"newer", b"old")
    assert files.names("/tmp") == ["old", "other"]


# -- ranges and conditions

@pytest.mark.parametrize("text,want,shown", [
    ("bytes=0-0", b"0", "bytes 0-0/10"), ("bytes=2-5", b"2345", "bytes 2-5/10"),
    ("bytes=7-", b"789", "bytes 7-9/10"), ("bytes=-3", b"789", "bytes 7-9/10"),
    ("bytes=-99", b"0123456789", "bytes 0-9/10"), ("bytes=8-99", b"89", "bytes 8-9/10")])
def test_ranges(files, text, want, shown):
    files.put("/tmp/r", b"0123456789")
    reply = files.call("GET", "", "/tmp/r", headers={"Range": text})
    assert (reply.status, reply.body, reply.headers["Content-Range"]) == (206, want, shown)


def test_ranges_that_cannot_be(files):
    files.put("/tmp/r", b"0123456789")
    for text in ("bytes=10-", "bytes=99-100", "bytes=-0"):
        reply = files.call("GET", "", "/tmp/r", headers={"Range": text})
        assert (reply.status, reply.code) == (416, "range_not_satisfiable"), text
        assert reply.headers["Content-Range"] == "bytes */10"
    files.refused(400, "invalid_request", "GET", "", "/tmp/r", headers={"Range": "bytes=5-2"})
    files.refused(400, "invalid_request", "GET", "", "/tmp/r", headers={"Range": "bytes=x"})
    for text in ("bytes=0-1,3-4", "lines=1-2"):  # not known to us: the whole is a right answer
        assert files.get("/tmp/r", {"Range": text}) == b"0123456789"


def test_if_range_falls_back_to_the_whole(files):
    tag = files.put("/tmp/r", b"0123456789")["etag"]
    reply = files.call("GET", "", "/tmp/r", headers={"Range": "bytes=1-2", "If-Range": tag})
    assert (reply.status, reply.body) == (206, b"12")
    reply = files.call("GET", "", "/tmp/r", headers={"Range": "bytes=1-2", "If-Range": '"x"'})
    assert (reply.status, reply.body) == (200, b"0123456789")


def test_head_and_if_none_match(files):
    tag = files.put("/tmp/h", b"x" * 2000)["etag"]
    reply = files.call("HEAD", "", "/tmp/h")
    assert (reply.status, reply.body) == (200, b"")
    assert (reply.headers["Content-Length"], reply.headers["ETag"]) == ("2000", tag)
    reply = files.call("GET", "", "/tmp/h", headers={"If-None-Match": tag})
    assert (reply.status, reply.body, reply.headers["ETag"]) == (304, b"", tag)
    assert files.call("GET", "", "/tmp/h", headers={"If-None-Match": '"x", ' + tag}).status == 304
    assert files.call("GET", "", "/tmp/h", headers={"If-None-Match": '"x"'}).status == 200
    assert files.put("/tmp/h", b"y" * 2000)["etag"] != tag
    assert files.call("GET", "", "/tmp/h", headers={"If-None-Match": tag}).status == 200
    assert files.call("HEAD", "", "/tmp/none").status == 404


def test_writers_that_collide(files):
    tag = files.put("/tmp/c", b"1")["etag"]
    files.put("/tmp/c", b"2", {"If-Match": tag})
    files.refused(412, "precondition_failed", "PUT", "", "/tmp/c", b"3", {"If-Match": tag})
    files.refused(412, "precondition_failed", "PUT", "", "/tmp/c", b"3", {"If-None-Match": "*"})
    files.refused(412, "precondition_failed", "PUT", "", "/tmp/nobody", b"3", {"If-Match": "*"})
    assert files.get("/tmp/c") == b"2" and not files.exists("/tmp/nobody")
    files.put("/tmp/fresh", b"1", {"If-None-Match": "*"})
    files.put("/tmp/fresh", b"2", {"If-Match": "*"})
    files.refused(400, "invalid_request", "PUT", "", "/tmp/c", b"3", {"If-Match": "bare"})
    files.refused(400, "invalid_request", "PUT", "", "/tmp/c", b"3", {"If-None-Match": tag})


# -- codings

def zstd(data, *args):
    return subprocess.run(["zstd", "-q", "-c", *args], input=data, capture_output=True,
                          check=True, timeout=60).stdout


def test_coded_bodies_are_decoded(files):
    data = os.urandom(1000) + b"text " * 100_000
    for coding, body in (("gzip", gzip.compress(data)), ("zstd", zstd(data))):
        assert files.put("/tmp/z", body, {"Content-Encoding": coding})["size"] == len(data)
        assert files.get("/tmp/z") == data
    files.refused(400, "not_supported", "PUT", "", "/tmp/z", b"x", {"Content-Encoding": "br"})


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_bad_data_leaves_the_old_file(files, coding):
    files.put("/tmp/old", b"old")
    good = gzip.compress(b"n" * 500_000) if coding == "gzip" else zstd(b"n" * 500_000)
    for body in (b"not coded at all", good[:-4], b""):
        files.refused(400, "invalid_request", "PUT", "", "/tmp/old", body,
                      {"Content-Encoding": coding})
        assert files.get("/tmp/old") == b"old"
    assert files.names("/tmp") == ["old"]


def test_answers_are_coded_when_asked(files):
    data = b"line of text\n" * 50_000
    files.put("/tmp/big", data)
    reply = files.call("GET", "", "/tmp/big", headers={"Accept-Encoding": "gzip"})
    assert reply.headers["Content-Encoding"] == "gzip" and len(reply.body) < len(data) / 10
    assert gzip.decompress(reply.body) == data
    assert reply.headers["ETag"].startswith('W/"')
    reply = files.call("GET", "", "/tmp/big", headers={"Accept-Encoding": "gzip, zstd"})
    assert reply.headers["Content-Encoding"] == "zstd"
    assert zstd(reply.body, "-d") == data
    reply = files.call("GET", "", "/tmp/big", headers={"Accept-Encoding": "gzip",
                                                       "Range": "bytes=0-3"})
    assert (reply.status, reply.body, reply.headers["Content-Encoding"]) == (206, b"line", None)


# -- big ones

@pytest.mark.timeout(300)
def test_a_large_file_both_ways_and_in_ranges(api, make):
    files = Files(api, make(image="tiny", disk_mb=1024)["id"])
    piece, n = os.urandom(1 << 20), 200
    connection = files.raw("PUT", "", "/big", {"Content-Length": str(n << 20)})
    for _ in range(n):
        connection.send(piece)
    assert finish(connection).json["size"] == n << 20
    connection, response = api.open("GET", files.url("", "/big"))
    seen = hashlib.sha256()
    while chunk := response.read(1 << 20):
        seen.update(chunk)
    connection.close()
    assert seen.digest() == hashlib.sha256(piece * n).digest()
    for first in (0, 12345, (100 << 20) - 7, (n << 20) - 50_000):
        got = files.get("/big", {"Range": f"bytes={first}-{first + 49_999}"})
        at = first % (1 << 20)
        assert got == (piece * 2)[at:at + 50_000]


def test_a_client_that_goes_away_leaves_the_old_file(api, tiny, files):
    files.put("/srv/d/file", b"old")
    connection = files.raw("PUT", "", "/srv/d/file", {"Content-Length": "10000000"})
    connection.send(b"x" * 3_000_000)
    until(files.workers, "a worker that takes it")
    connection.close()
    until(lambda: not files.workers(), "the worker's end")
    assert api.out(tiny, "ls -A /srv/d") == "file\n"
    assert files.get("/srv/d/file") == b"old"


def head_of(daemon, files, path, length, **headers):
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (f"PUT {files.url(path=path)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
            f"Content-Length: {length}\r\n{more}\r\n").encode()


class Answers(io.BufferedReader):
    """The answers of a connection, one after another; what was read too far is for the next."""

    def __init__(self, sock):
        super().__init__(socket.SocketIO(sock, "r"))

    def makefile(self, mode):
        return self

    def close(self):
        """An answer's end is not the connection's."""

    def next(self):
        reply = http.client.HTTPResponse(self)
        reply.begin()
        reply.read()
        return reply.status


def test_a_large_body_arrives_whole_in_whatever_pieces(daemon, files):
    """Long bodies pass from socket to socket; their beginning and their end are read, and so is what comes behind them."""
    data = os.urandom(3_000_001)
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=DEADLINE) as c:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        c.sendall(head_of(daemon, files, "/srv/pieces", len(data)) + data[:777])
        at = 777
        for n in (1, 70_000, 3, 262_144, 1, 1_000_000):
            c.sendall(data[at:at + n])
            at += n
        c.sendall(data[at:] + head_of(daemon, files, "/srv/behind", 3) + b"end")
        answers = Answers(c)
        assert (answers.next(), answers.next()) == (201, 201)
    assert files.get("/srv/pieces") == data
    assert files.get("/srv/behind") == b"end"


def test_a_large_body_that_is_cut_leaves_the_old_file(daemon, files):
    files.put("/srv/cut", b"old")
    for sent in (70_000, 262_144, 600_000):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=DEADLINE) as c:
            c.sendall(head_of(daemon, files, "/srv/cut", 1_000_000) + bytes(sent))
            c.shutdown(socket.SHUT_WR)
            c.recv(1000)  # until the other side has noticed
        assert files.get("/srv/cut") == b"old"
    assert files.names("/srv") == ["cut"]


def test_a_large_body_that_is_refused_is_read_and_the_connection_goes_on(daemon, files):
    files.put("/srv/there", b"old")
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=DEADLINE) as c:
        answers = Answers(c)
        for name, status in (("/srv/there", 412), ("/srv/new", 201)):
            c.sendall(head_of(daemon, files, name, 2_000_000, **{"If-None-Match": "*"}) + bytes(2_000_000))
            assert answers.next() == status
    assert files.get("/srv/there") == b"old" and files.get("/srv/new") == bytes(2_000_000)


def test_writers_at_the_same_time_never_mix(api, tiny, files):
    import concurrent.futures
    bodies = [bytes([c]) * 300_000 for c in b"abcdefgh"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda b: files.put("/tmp/one", b), bodies))
    assert files.get("/tmp/one") in bodies
    assert files.names("/tmp") == ["one"]


# -- what is refused

def test_errors_of_paths(files, api, tiny):
    api.out(tiny, "mkdir /tmp/d; mkfifo /tmp/fifo; ln -s loop /tmp/loop; echo x > /tmp/f")
    files.refused(404, "file_not_found", "GET", "", "/nowhere")
    files.refused(400, "is_a_directory", "GET", "", "/tmp")
    files.refused(400, "is_a_directory", "PUT", "", "/tmp/d", b"x")
    files.refused(400, "not_a_directory", "GET", "", "/tmp/f/x")
    files.refused(400, "not_a_file", "GET", "", "/tmp/fifo")
    files.refused(400, "too_many_links", "GET", "", "/tmp/loop")
    files.refused(400, "name_too_long", "GET", "", "/tmp/" + "n" * 300)
    files.refused(400, "name_too_long", "GET", "", "/" + "n/" * 2500)
    files.refused(400, "invalid_query", "GET", "")
    files.refused(400, "invalid_query", "GET", "", "")
    files.refused(400, "invalid_query", "GET", "", "/tmp", more="1")
    files.refused(400, "user_not_found", "GET", "", "/tmp/f", user="nobody-here")
    files.refused(400, "not_a_directory", "GET", "/list", "/tmp/f")
    files.refused(404, "file_not_found", "GET", "/list", "/nowhere")
    files.refused(400, "invalid_query", "GET", "/list", "/tmp", depth="0")


def test_users_keep_their_rights(files, api, tiny):
    files.put("/root/secret", b"s", mode="0600")
    files.refused(403, "permission_denied", "GET", "", "/root/secret", user="user")
    files.refused(403, "permission_denied", "PUT", "", "/etc/passwd", b"x", user="user")
    files.refused(403, "permission_denied", "PUT", "", "/usr/new", b"x", user="user")
    api.out(tiny, "chmod 711 /root")
    files.refused(403, "permission_denied", "GET", "", "/root/secret", user="user")
    assert files.get("/root/secret") == b"s"


def test_sandboxes_that_are_not_there_or_not_running(api, tiny, files):
    api.refused(404, "sandbox_not_found", "GET", "/v1/sandboxes/nobody/files?path=/x")
    api.refused(404, "sandbox_not_found", "PUT", "/v1/sandboxes/nobody/files?path=/x", b"x")
    api.ok("POST", f"/v1/sandboxes/{tiny}/stop")
    files.refused(409, "sandbox_not_running", "GET", "", "/etc/passwd")
    files.refused(409, "sandbox_not_running", "PUT", "", "/x", b"x")
    api.delete(tiny)
    files.refused(404, "sandbox_gone", "GET", "", "/etc/passwd")


def test_the_disk_limit_is_told_and_the_old_file_stays(api, make):
    files = Files(api, make(image="tiny", disk_mb=32)["id"])
    files.put("/srv/f", b"old")
    error = files.refused(507, "no_space", "PUT", "", "/srv/f", os.urandom(1 << 20) * 64)
    assert "disk" in error["message"]
    assert files.get("/srv/f") == b"old" and files.names("/srv") == ["f"]


# -- looking

def test_stat_and_links(api, tiny, files):
    api.out(tiny, "cd /tmp; echo hi > f; chmod 4711 f; ln -s f l; ln -s nowhere dead; mkdir d")
    e = files.stat("/tmp/f")
    assert (e["mode"], e["permissions"]) == ("4711", "rws--x--x")
    assert files.stat("/tmp/l")["size"] == 3
    link = files.stat("/tmp/l", follow="false")
    assert (link["type"], link["target"], link["path"]) == ("symlink", "f", "/tmp/l")
    assert files.stat("/tmp/d")["type"] == "directory"
    files.refused(404, "file_not_found", "GET", "/stat", "/tmp/dead")
    assert files.stat("/tmp/dead", follow="false")["target"] == "nowhere"
    assert files.stat("/dev/null")["type"] == "chardev"
    assert files.ok("GET", "/readlink", "/tmp/dead") == {"target": "nowhere"}
    files.refused(400, "not_a_file", "GET", "/readlink", "/tmp/f")


def test_list_with_depth_and_pages(api, tiny, files):
    api.out(tiny, "mkdir -p /tmp/a/b/c; cd /tmp/a; touch 1 2 b/3 b/c/4 .hidden")
    assert files.names("/tmp/a") == [".hidden", "1", "2", "b"]
    deep = [e["path"] for e in files.ok("GET", "/list", "/tmp/a", depth=64)["entries"]]
    assert deep == ["/tmp/a/" + p for p in (".hidden", "1", "2", "b", "b/3", "b/c", "b/c/4")]
    assert [e["path"] for e in files.ok("GET", "/list", "/tmp/a", depth=2)["entries"]] == \
        [p for p in deep if p.count("/") <= 4]
    seen, cursor = [], None
    while True:
        page = files.ok("GET", "/list", "/tmp/a", depth=64, limit=2,
                        **({"cursor": cursor} if cursor else {}))
        assert len(page["entries"]) <= 2
        seen += [e["path"] for e in page["entries"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert seen == deep


def test_names_of_every_kind(files):
    for name in ("with space", "ümläut", "quote\"'", "back\\slash", "%41", "a+b&c=d", "-rf", "🐇"):
        files.put("/tmp/odd/" + name, name.encode())
        assert files.get("/tmp/odd/" + name) == name.encode()
        assert files.stat("/tmp/odd/" + name)["name"] == name
    assert len(files.names("/tmp/odd")) == 8


# -- changing

def test_mkdir(files):
    reply = files.call("POST", "/mkdir", body={"path": "/tmp/x/y", "mode": "0700"})
    assert (reply.status, reply.json["mode"], reply.json["type"]) == (201, "0700", "directory")
    assert files.call("POST", "/mkdir", body={"path": "/tmp/x/y"}).status == 200
    files.refused(409, "file_exists", "POST", "/mkdir", body={"path": "/tmp/x", "exist_ok": False})
    files.refused(404, "file_not_found", "POST", "/mkdir",
                  body={"path": "/tmp/q/r", "parents": False})
    files.put("/tmp/file", b"")
    files.refused(409, "file_exists", "POST", "/mkdir", body={"path": "/tmp/file"})
    files.refused(400, "missing_field", "POST", "/mkdir", body={})
    files.refused(400, "unknown_field", "POST", "/mkdir", body={"path": "/x", "nope": 1})
    files.refused(400, "invalid_field", "POST", "/mkdir", body={"path": "/x", "mode": "rwx"})


def test_delete(api, tiny, files):
    api.out(tiny, "mkdir -p /tmp/d/e; touch /tmp/d/e/f /tmp/one; ln -s /etc /tmp/etc")
    files.ok("DELETE", "", "/tmp/one")
    files.refused(404, "file_not_found", "DELETE", "", "/tmp/one")
    files.ok("DELETE", "", "/tmp/one", force="true")
    files.refused(409, "directory_not_empty", "DELETE", "", "/tmp/d")
    files.ok("DELETE", "", "/tmp/d", recursive="true")
    files.ok("DELETE", "", "/tmp/etc", recursive="true")  # the link, not what it points to
    assert files.names("/tmp") == [] and files.exists("/etc/passwd")


def test_move_and_copy(api, tiny, files):
    files.put("/tmp/a", b"a", mode="0640")
    assert files.post("/move", **{"from": "/tmp/a", "to": "/tmp/deep/er/b"})["path"] == \
        "/tmp/deep/er/b"
    assert not files.exists("/tmp/a")
    assert files.post("/copy", **{"from": "/tmp/deep/er/b", "to": "/tmp/c"})["mode"] == "0640"
    assert files.get("/tmp/c") == files.get("/tmp/deep/er/b") == b"a"
    files.post("/copy", **{"from": "/tmp/deep", "to": "/tmp/tree"})
    assert files.get("/tmp/tree/er/b") == b"a"
    files.put("/tmp/x", b"x")
    for op in ("/move", "/copy"):
        files.refused(409, "file_exists", "POST", op,
                      body={"from": "/tmp/x", "to": "/tmp/c", "overwrite": False})
        files.refused(404, "file_not_found", "POST", op, body={"from": "/tmp/no", "to": "/tmp/c"})
        files.refused(400, "missing_field", "POST", op, body={"from": "/tmp/x"})
    files.post("/move", **{"from": "/tmp/x", "to": "/tmp/c"})
    assert files.get("/tmp/c") == b"x"


def test_chmod_chown_symlink_truncate(api, tiny, files):
    files.put("/tmp/t/f", b"0123456789")
    assert files.post("/chmod", path="/tmp/t/f", mode="0600")["mode"] == "0600"
    files.post("/chmod", path="/tmp/t", mode="0750", recursive=True)
    assert files.stat("/tmp/t/f")["mode"] == "0750"
    e = files.post("/chown", path="/tmp/t", owner="user:user", recursive=True)
    assert (e["owner"], e["group"]) == ("user", "user")
    assert files.stat("/tmp/t/f")["uid"] == 1000
    files.refused(403, "permission_denied", "POST", "/chown",
                  body={"path": "/etc/passwd", "owner": "user", "user": "user"})
    e = files.post("/symlink", path="/tmp/l", target="t/f")
    assert (e["type"], e["target"]) == ("symlink", "t/f")
    files.refused(409, "file_exists", "POST", "/symlink", body={"path": "/tmp/l", "target": "x"})
    assert files.post("/truncate", path="/tmp/t/f", size=4)["size"] == 4
    assert files.get("/tmp/t/f") == b"0123"
    assert files.post("/truncate", path="/tmp/t/f", size=6)["size"] == 6
    assert files.get("/tmp/t/f") == b"0123\0\0"
    files.refused(400, "missing_field", "POST", "/chmod", body={"path": "/tmp/l"})
    files.refused(400, "missing_field", "POST", "/chown", body={"path": "/tmp/l"})
    files.refused(400, "missing_field", "POST", "/symlink", body={"path": "/tmp/l"})


def test_xattrs(files):
    import base64
    files.put("/tmp/f", b"x")
    assert files.ok("GET", "/xattrs", "/tmp/f") == {"xattrs": {}, "xattrs_b64": {}}
    files.ok("PUT", "/xattrs", body={"path": "/tmp/f", "name": "user.text", "value": "héllo"})
    raw = bytes(range(256))
    files.ok("PUT", "/xattrs", body={"path": "/tmp/f", "name": "user.raw",
                                     "value_b64": base64.b64encode(raw).decode()})
    found = files.ok("GET", "/xattrs", "/tmp/f")
    assert found["xattrs"] == {"user.text": "héllo"}
    assert base64.b64decode(found["xattrs_b64"]["user.raw"]) == raw
    files.ok("DELETE", "/xattrs", "/tmp/f", name="user.raw")
    files.refused(404, "xattr_not_found", "DELETE", "/xattrs", "/tmp/f", name="user.raw")
    files.refused(400, "missing_field", "PUT", "/xattrs", body={"path": "/tmp/f", "name": "user.x"})
    files.refused(400, "invalid_field", "PUT", "/xattrs",
                  body={"path": "/tmp/f", "name": "user.x", "value_b64": "?"})


def test_usage_and_find(api, tiny, files):
    api.out(tiny, "mkdir -p /tmp/u/s; cd /tmp/u; head -c 100000 /dev/zero | tr '\\0' x > a.py; "
            "ln a.py s/b.py; touch s/c.txt; ln -s a.py l")
    u = files.ok("GET", "/usage", "/tmp/u")
    assert (u["directories"], u["files"]) == (2, 4) and u["size"] >= 100_000 and u["disk_bytes"] >= 100_000
    assert u["disk_bytes"] < 250_000  # a hard link counts once
    found = files.ok("GET", "/find", "/tmp/u", name="*.py")
    assert sorted(e["path"] for e in found["entries"]) == ["/tmp/u/a.py", "/tmp/u/s/b.py"]
    assert found["truncated"] is False
    found = files.ok("GET", "/find", "/tmp/u", name=["*.py", "*.txt"], limit=2)
    assert len(found["entries"]) == 2 and found["truncated"] is True
    found = files.ok("GET", "/find", "/tmp/u", name="*", type="directory")
    assert [e["name"] for e in found["entries"]] == ["s"]
    files.refused(400, "invalid_query", "GET", "/find", "/tmp/u", name="*", type="door")
