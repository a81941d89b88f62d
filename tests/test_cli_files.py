"""`warren cp` and `warren files`."""
import os
import subprocess

import pytest

from harness import BUILD


@pytest.fixture
def warren(daemon):
    def run(*args, status=0, stdin=None):
        p = subprocess.run([str(BUILD / "warren"), *map(str, args)], input=stdin,
                           capture_output=True, timeout=60, env=daemon.cli_environment())
        assert p.returncode == status, (args, p.stdout, p.stderr)
        return p.stdout if status == 0 else p.stderr
    return run


def test_cp_files(api, tiny, warren, tmp_path):
    one = tmp_path / "one.sh"
    one.write_bytes(b"#!/bin/sh\necho one\n")
    one.chmod(0o755)
    warren("cp", one, f"{tiny}:/srv/x.sh")
    assert api.out(tiny, ["/srv/x.sh"]) == "one\n"  # its mode came along
    warren("cp", one, f"{tiny}:/srv")
    warren("cp", one, f"{tiny}:/srv/new/")
    assert api.out(tiny, "cat /srv/one.sh /srv/new/one.sh | wc -l").strip() == "4"
    warren("cp", f"{tiny}:/srv/x.sh", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == one.read_bytes()
    assert os.stat(tmp_path / "back").st_mode & 0o777 == 0o755
    warren("cp", f"{tiny}:/srv/x.sh", tmp_path)
    assert (tmp_path / "x.sh").exists() and not list(tmp_path.glob("*.part"))
    assert warren("cp", "-", f"{tiny}:in.txt", stdin=b"typed") == b""
    assert warren("cp", f"{tiny}:in.txt", "-") == b"typed"


def test_cp_directories(api, tiny, make, warren, tmp_path):
    d = tmp_path / "tree"
    (d / "sub").mkdir(parents=True)
    (d / "sub" / "f").write_bytes(b"1" * 100_000)
    (d / "link").symlink_to("sub/f")
    warren("cp", d, f"{tiny}:/srv/copy")
    assert api.out(tiny, "readlink /srv/copy/link; wc -c < /srv/copy/sub/f").split() == \
        ["sub/f", "100000"]
    warren("cp", d, f"{tiny}:/srv")  # there is /srv now: into it
    assert api.out(tiny, "ls /srv").split() == ["copy", "tree"]
    warren("cp", f"{tiny}:/srv/copy", tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "f").read_bytes() == b"1" * 100_000
    other = make(image="tiny")["id"]
    warren("cp", f"{tiny}:/srv/copy", f"{other}:/srv/there")
    warren("cp", f"{tiny}:/srv/copy/sub/f", f"{other}:/srv/there/g")
    assert api.out(other, "cd /srv/there; cmp sub/f g && echo same") == "same\n"


def test_cp_that_cannot_be(tiny, warren, tmp_path):
    assert b"SANDBOX:PATH" in warren("cp", "a", "b", status=2)
    assert b"no-such" in warren("cp", "/no-such", f"{tiny}:/x", status=1)
    assert b"does not exist" in warren("cp", f"{tiny}:/no-such", tmp_path / "x", status=1)
    assert not (tmp_path / "x").exists()
    assert b"no sandbox" in warren("cp", f"{tmp_path}/../{tmp_path.name}", "nobody:/x", status=1)


def test_files_commands(api, tiny, warren):
    warren("files", "mkdir", tiny, "/srv/a/b", "/srv/c")
    warren("files", "write", "-m", "0600", tiny, "/srv/a/f.txt", stdin=b"one two\nthree\n")
    warren("files", "write", "-a", tiny, "/srv/a/f.txt", stdin=b"four\n")
    assert warren("files", "cat", tiny, "/srv/a/f.txt") == b"one two\nthree\nfour\n"
    assert warren("files", "ls", tiny, "/srv") == b"/srv/a/\n/srv/c/\n"
    assert b"-rw-------" in warren("files", "ls", "-l", "-d", "2", tiny, "/srv")
    assert b"root" in warren("files", "stat", tiny, "/srv/a/f.txt")
    warren("files", "chmod", tiny, "0644", "/srv/a/f.txt")
    warren("files", "chown", "-r", tiny, "user", "/srv/a")
    assert api.out(tiny, "stat -c %U%a /srv/a/f.txt").strip() == "user644"
    warren("files", "cp", tiny, "/srv/a", "/srv/d")
    warren("files", "mv", tiny, "/srv/d/f.txt", "/srv/d/g.txt")
    warren("files", "ln", tiny, "g.txt", "/srv/d/l")
    assert warren("files", "find", tiny, "/srv", "*.txt") == b"/srv/a/f.txt\n/srv/d/g.txt\n"
    assert warren("files", "search", tiny, "two", "/srv") == \
        b"/srv/a/f.txt:1:5:one two\n/srv/d/g.txt:1:5:one two\n"
    warren("files", "search", tiny, "nowhere", "/srv", status=1)
    assert b"1  /srv/d/g.txt" in warren("files", "replace", "-n", tiny, "two", "2", "/srv/d")
    warren("files", "replace", tiny, "two", "2", "/srv/d")
    assert warren("files", "cat", tiny, "/srv/d/l").startswith(b"one 2\n")
    assert b"/srv/d" in warren("files", "du", tiny, "/srv/d")
    warren("files", "rm", tiny, "/srv/d", status=1)
    warren("files", "rm", "-r", tiny, "/srv/d")
    warren("files", "rm", "-f", tiny, "/srv/d")
    assert b"does not exist" in warren("files", "cat", tiny, "/srv/d", status=1)


def test_files_watch_prints_changes(daemon, api, tiny):
    api.out(tiny, "mkdir -p /srv/w")
    p = subprocess.Popen([str(BUILD / "warren"), "files", "watch", "-r", tiny, "/srv/w"],
                         stdout=subprocess.PIPE, env=daemon.cli_environment())
    try:
        n = 0
        while True:  # until it watches, each of these may come too early
            api.out(tiny, f"echo 1 > /srv/w/f{n}; sleep 0.1")
            n += 1
            import select
            if select.select([p.stdout], [], [], 0.2)[0]:
                break
            assert n < 100
        assert b"/srv/w/f" in p.stdout.readline()
    finally:
        p.kill()
        p.wait()
