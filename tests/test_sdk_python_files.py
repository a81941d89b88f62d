"""The Python client's files against a real daemon: every method."""
import io
import os
import pathlib

import pytest

from sdk_kit import client, warren  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def box(client):
    with client.sandboxes.create("tiny") as sandbox:
        yield sandbox


@pytest.fixture
def files(box):
    """The files, with a fresh empty directory at /root/t."""
    box.run("rm -rf /root/t && mkdir /root/t", check=True)
    return box.files


def test_write_and_read(files, box):
    entry = files.write("/root/t/a/b.txt", "hällo\n", mode=0o640)
    assert (entry.path, entry.type, entry.size, entry.mode) == ("/root/t/a/b.txt", "file", 7, "0640")
    assert files.read_text("/root/t/a/b.txt") == "hällo\n"
    assert files.read("t/a/b.txt") == "hällo\n".encode()  # relative to the home
    assert files.read("/root/t/a/b.txt", start=1, end=3) == "ä".encode()
    assert files.append("/root/t/a/b.txt", b"more").size == 11
    assert files.touch("/root/t/empty").size == 0
    assert box.run("cat /root/t/a/b.txt").stdout == "hällo\nmore"
    with pytest.raises(warren.NotFound) as missing:
        files.read("/root/t/none")
    assert missing.value.code == "file_not_found"
    with pytest.raises(warren.Forbidden):
        files.read("/root/t/a/b.txt", user="user")


def test_large_files_stream(files, box, tmp_path):
    local = tmp_path / "large"
    data = os.urandom(1 << 20) * 5 + b"end"
    local.write_bytes(data)
    local.chmod(0o755)
    assert files.upload(local, "/root/t/large").size == len(data)
    assert "755" in files.stat("/root/t/large").mode
    assert files.download("/root/t/large", tmp_path / "back") == len(data)
    assert (tmp_path / "back").read_bytes() == data
    out = io.BytesIO()
    assert files.download("/root/t/large", out) == len(data) and out.getvalue() == data
    with files.open("/root/t/large") as stream:
        assert stream.read(1000) == data[:1000]  # and leave the rest
    assert files.write("/root/t/pieces", (data[i:i + 100000] for i in range(0, len(data), 100000))
                       ).size == len(data)
    assert box.run("cmp /root/t/large /root/t/pieces").ok


def test_nobody_overwrites_what_another_wrote(files):
    first = files.write("/root/t/f", "1", only_new=True)
    with pytest.raises(warren.Conflict):
        files.write("/root/t/f", "2", only_new=True)
    second = files.write("/root/t/f", "22", if_match=first.etag)
    with pytest.raises(warren.Conflict) as stale:
        files.write("/root/t/f", "333", if_match=first.etag)
    assert stale.value.code == "precondition_failed" and second.etag != first.etag
    assert files.read("/root/t/f") == b"22"


def test_directories(files):
    assert files.mkdir("/root/t/x/y", mode="0700").type == "directory"
    files.mkdir("/root/t/x/y")  # there already
    with pytest.raises(warren.Conflict):
        files.mkdir("/root/t/x/y", exist_ok=False)
    for name in ("b", "a", "x/y/z"):
        files.write(f"/root/t/{name}", name)
    assert [e.name for e in files.list("/root/t")] == ["a", "b", "x"]
    assert {e.path for e in files.iter("/root/t", depth=3)} >= {"/root/t/x/y", "/root/t/x/y/z"}
    assert files.exists("/root/t/a") and not files.exists("/root/t/none")
    with pytest.raises(warren.ApiError):
        files.remove("/root/t/x")
    files.remove("/root/t/x", recursive=True)
    files.remove("/root/t/x", force=True)
    assert [e.name for e in files.list("/root/t")] == ["a", "b"]


def test_changes_of_one_file(files):
    files.write("/root/t/a", "text")
    assert files.copy("/root/t/a", "/root/t/sub/b").path == "/root/t/sub/b"
    assert files.move("/root/t/sub/b", "/root/t/c").path == "/root/t/c"
    with pytest.raises(warren.Conflict):
        files.move("/root/t/a", "/root/t/c", overwrite=False)
    assert files.chmod("/root/t/c", 0o600).mode == "0600"
    assert files.chown("/root/t/c", "user:user").owner == "user"
    assert files.truncate("/root/t/c", 2).size == 2
    assert files.symlink("/root/t/link", "c").type == "symlink"
    assert files.readlink("/root/t/link") == "c"
    assert files.stat("/root/t/link").size == 2
    assert files.stat("/root/t/link", follow=False).type == "symlink"
    usage = files.usage("/root/t")
    assert usage.files >= 2 and usage.directories >= 1 and usage.size >= 6
    assert files.stat("/root/t/c").modified_at.tzinfo is not None


def test_extended_attributes(files):
    files.write("/root/t/a", "")
    files.set_xattr("/root/t/a", "user.note", "hi")
    files.set_xattr("/root/t/a", "user.raw", b"\xff\0")
    assert files.xattrs("/root/t/a") == {"user.note": b"hi", "user.raw": b"\xff\0"}
    files.remove_xattr("/root/t/a", "user.note")
    assert files.xattrs("/root/t/a") == {"user.raw": b"\xff\0"}


def test_find_search_and_replace(files):
    files.write("/root/t/a.py", "one\ntwo one\n")
    files.write("/root/t/sub/b.py", "One\n")
    files.write("/root/t/c.txt", "one\n")
    assert {e.path for e in files.find("/root/t", "*.py")} == {"/root/t/a.py", "/root/t/sub/b.py"}
    assert [e.name for e in files.find("/root/t", ["s*", "c*"], type="directory")] == ["sub"]
    found = files.search("/root/t", "one", include=["*.py"])
    assert [(m.path, m.line, m.column) for m in found.matches] == [
        ("/root/t/a.py", 1, 1), ("/root/t/a.py", 2, 5)]
    assert len(files.search(["/root/t"], "ONE", ignore_case=True).matches) == 4
    assert files.search("/root/t", "t.o", regex=True, limit=1).matches[0].text == "two one"
    dry = files.replace("/root/t", "one", "1", include=["*.py"], dry_run=True)
    assert dry.count == 2 and files.read_text("/root/t/a.py") == "one\ntwo one\n"
    done = files.replace("/root/t", "one", "1", include=["*.py"])
    assert done.changed == [{"path": "/root/t/a.py", "count": 2}]
    assert files.read_text("/root/t/a.py") == "1\ntwo 1\n"


def test_directories_in_bulk(files, tmp_path, box):
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    for n in range(200):
        (source / f"sub/{n}").write_text("x" * n)
    (source / "run").write_text("#!/bin/sh\necho ran\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("run")
    for compress in (False, True):
        sent = files.upload_dir(source, "/root/t/up", compress=compress,
                                wanted=lambda name: name != "sub/7")
        assert sent.files >= 200
    assert box.run("ls sub | wc -l; ./link; test -e sub/7 || echo left out",
                   cwd="/root/t/up").stdout == "199\nran\nleft out\n"
    box.run("ln -s /etc/passwd /root/t/up/out; mkfifo /root/t/up/pipe", check=True)
    count, _, left_out = files.download_dir("/root/t/up", tmp_path / "back")
    assert count == 200 and sorted(os.path.basename(n) for n in left_out) == ["out", "pipe"]
    assert (tmp_path / "back/sub/199").read_text() == "x" * 199
    assert os.access(tmp_path / "back/run", os.X_OK) and os.readlink(tmp_path / "back/link") == "run"


def test_archives(files, tmp_path):
    files.write("/root/t/in/a", "content")
    with files.archive("/root/t/in", "tar.gz") as stream:
        packed = stream.read()
    assert packed.startswith(b"\x1f\x8b")
    assert files.unpack("/root/t/out", packed).files == 1
    assert [e.path for e in files.find("/root/t/out", "a")]
    with pytest.raises(warren.InvalidRequest) as bad:
        files.unpack("/root/t/out", b"not an archive" * 100, format="tar")
    assert bad.value.code == "invalid_archive"


def test_many_files(files, box):
    many = {f"/root/t/many/{n}": f"file {n}" for n in range(50)}
    many["t/relative"] = b"\0\xff"
    many["/root/t/odd \"na\nme\""] = io.BytesIO(b"odd")
    done = files.write_many(many, mode=0o600)
    assert done.files == 52 and done.bytes == 40 * 7 + 10 * 6 + 2 + 3 and len(done.entries) == 52
    assert files.stat("/root/t/many/7").mode == "0600"
    answer = files.read_many(["/root/t/many/49", "/root/t/none", "t/relative",
                              "/root/t/odd \"na\nme\""])
    assert answer["/root/t/many/49"] == b"file 49" and answer["t/relative"] == b"\0\xff"
    assert answer["/root/t/odd \"na\nme\""] == b"odd"
    assert answer["/root/t/none"].code == "file_not_found"
    assert box.run("ls /root/t/many | wc -l").stdout == "50\n"


def test_watching(files, box):
    with files.watch("/root/t", recursive=True) as watch:
        seen = []

        def read_to(*last):
            while not seen or seen[-1] != last:
                event = next(watch)
                seen.append((event.type, event.path))

        box.run("mkdir /root/t/d && echo x > /root/t/d/f", check=True)
        read_to("create", "/root/t/d/f")
        assert seen[0] == ("create", "/root/t/d")
        box.run("rm /root/t/d/f", check=True)  # what goes before its directory is watched is never told
        read_to("remove", "/root/t/d/f")


def test_watching_by_polls(files, box):
    with files.start_watch("/root/t") as watch:
        assert watch.poll() == []
        box.run("echo x > /root/t/f", check=True)
        seen = []
        while not any(e.type == "write" for e in seen):
            seen += watch.poll(wait_s=20)
        assert {e.path for e in seen} == {"/root/t/f"} and watch.dropped == 0
        assert seen[0].type == "create" and seen[0].time is not None
    with pytest.raises(warren.NotFound):
        watch.poll()


def test_every_method_is_here():
    """A method without a test is a method that nobody tried."""
    text = (pathlib.Path(__file__).read_text())
    names = [n for n in vars(warren.Files) if not n.startswith("_")]
    assert [n for n in names if f".{n}(" not in text] == []
