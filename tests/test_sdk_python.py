"""The Python client against a real daemon: every public method, retries, and broken connections."""
import contextlib
import datetime
import http.server
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import threading

import pytest

from harness import until
from sdk_kit import SDK, client, warren  # noqa: F401 - a fixture
from warren_sandbox import _archive, _http, models
from warren_sandbox.files import parse_multipart


@pytest.fixture(scope="module")
def shared(client):
    with client.sandboxes.create("tiny", metadata={"for": "sdk"}) as sandbox:
        yield sandbox


# -- without a daemon

@contextlib.contextmanager
def answering(*replies):
    """A server that gives these answers, (status, headers, body) or None to hang up; yields its
    address and the list of what it was asked."""
    asked, left = [], list(replies)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            size = int(self.headers.get("Content-Length") or 0)
            asked.append((self.command, self.path, dict(self.headers), self.rfile.read(size)))
            reply = left.pop(0)
            if reply is None:
                self.close_connection = True
                return
            status, headers, body = reply
            self.send_response(status)
            for name, value in {"Content-Length": len(body), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)
        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


OK = (200, {}, b'{"status": "ok"}')


def error(status, code, **headers):
    return status, headers, json.dumps({"error": {"code": code, "message": "no"}}).encode()


def test_a_busy_daemon_is_asked_again():
    with answering(error(429, "too_many_requests", **{"Retry-After": "0"}), error(503, "capacity"),
                   OK) as (url, asked):
        assert warren.Client(url, "k").health()["status"] == "ok"
        assert len(asked) == 3


def test_a_broken_connection_is_made_again_only_where_that_is_safe():
    with answering(None, OK) as (url, asked):
        assert warren.Client(url, "k").health()["status"] == "ok"
        assert len(asked) == 2
    with answering(None, OK) as (url, asked), pytest.raises(warren.ConnectionFailed):
        warren.Client(url, "k").transport.call("POST", "/v1/sandboxes/x/exec", {"shell": "true"})
    assert len(asked) == 1


def test_a_creation_is_repeated_under_one_key():
    with answering(None, (201, {}, b'{"id": "abc", "state": "running"}')) as (url, asked):
        assert warren.Client(url, "k").create().id == "abc"
        keys = [headers["Idempotency-Key"] for _, _, headers, _ in asked]
        assert len(keys) == 2 and len(set(keys)) == 1 and len(keys[0]) >= 16


def test_a_long_pause_is_left_to_the_caller():
    with answering(error(429, "too_many_requests", **{"Retry-After": "3600"})) as (url, _), \
            pytest.raises(warren.RateLimited) as caught:
        warren.Client(url, "k").health()
    assert caught.value.retry_after == 3600


@pytest.mark.parametrize("status,code,kind", [
    (400, "invalid_field", warren.InvalidRequest), (401, "unauthorized", warren.Unauthorized),
    (403, "quota_exceeded", warren.Forbidden), (404, "file_not_found", warren.NotFound),
    (404, "sandbox_gone", warren.SandboxGone), (409, "name_taken", warren.Conflict),
    (412, "precondition_failed", warren.Conflict), (424, "registry_failed", warren.Failed),
    (507, "no_space", warren.NoSpace), (500, "internal", warren.ApiError)])
def test_errors_have_classes_and_codes(status, code, kind):
    with answering(error(status, code)) as (url, _), pytest.raises(kind) as caught:
        warren.Client(url, "k").health()
    assert caught.value.code == code and caught.value.status == status


def test_what_is_not_our_daemon_is_said_so():
    with answering((200, {}, b"<html>")) as (url, _), pytest.raises(warren.ProtocolError):
        warren.Client(url, "k").health()
    with answering((502, {}, b"bad gateway")) as (url, _), pytest.raises(warren.ApiError) as caught:
        warren.Client(url, "k").health()
    assert caught.value.code == "http_error" and "bad gateway" in str(caught.value)


def test_nobody_there(tmp_path):
    for url in ("http://127.0.0.1:1", f"unix://{tmp_path}/none.sock"):
        with pytest.raises(warren.ConnectionFailed):
            warren.Client(url, "k", retries=0).health()
    with pytest.raises(ValueError):
        warren.Client("ftp://x")


def test_a_team_and_a_key_travel_with_every_request():
    with answering(OK) as (url, asked):
        warren.Client(url, "warren_abc", team="blue").health()
        headers = asked[0][2]
        assert headers["Authorization"] == "Bearer warren_abc"
        assert headers["X-Warren-Team"] == "blue"


def test_an_upload_is_sent_again_from_its_start():
    with answering(None, (200, {}, b'{"path": "/x", "size": 5}')) as (url, asked):
        client = warren.Client(url, "k")
        files = warren.Files(client.transport, "/v1/sandboxes/x")
        file = io.BytesIO(b"..hello")
        file.seek(2)
        assert files.write("/x", file).size == 5
        assert [body for *_, body in asked] == [b"hello", b"hello"]


def test_times_are_parsed_with_any_decimals():
    at = models.parse_time("2024-05-06T07:08:09.123456789Z")
    assert at == datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, datetime.timezone.utc)
    assert models.parse_time("2024-05-06T07:08:09+02:00").hour == 7
    assert models.parse_time(None) is None
    with pytest.raises(ValueError):
        models.parse_time("yesterday")


def test_what_is_new_in_an_answer_is_kept_raw():
    info = models.SandboxInfo.of({"id": "a", "novelty": 7})
    assert info.id == "a" and info.raw["novelty"] == 7


def test_bytes_that_are_not_text():
    result = models.Result.of({"exit_code": 0, "stdout_b64": "/wA=", "stderr": "e"})
    assert result.stdout_bytes == b"\xff\0" and result.stderr == "e" and result.stdout == "\ufffd\0"


def test_queries():
    assert _http.encode_query({"a": True, "b": None, "c": ["x", "y&"], "d": 1}) == \
        "?a=true&c=x&c=y%26&d=1"
    assert _http.encode_query({}) == ""


def test_the_parts_of_a_bulk_read():
    name = 'Content-Disposition: attachment; filename="%s"\r\n'
    body = ("--B\r\n" + name % "/a" + "Content-Length: 7\r\n\r\n--B\r\nx\r\n"
            "\r\n--B\r\n" + name % '/root/b\\"%0A%41' + "Content-Length: 0\r\n\r\n"
            "\r\n--B\r\n" + name % "c" + "X-Warren-Error: file_not_found\r\n\r\n"
            '{"code": "file_not_found", "message": "no"}\r\n--B--\r\n').encode()
    kind = 'multipart/mixed; boundary="B"'
    parts = dict(parse_multipart(body, kind, ["c", "/a", 'b"\n%41']))
    assert parts["/a"] == b"--B\r\nx\r\n"[:7] and parts['b"\n%41'] == b"" and len(parts) == 3
    assert parts["c"].code == "file_not_found" and parts["c"].message == "no"
    assert '/root/b"\n%41' in dict(parse_multipart(body, kind, []))  # from a directory
    for cut in (20, 70, len(body) - 8):
        with pytest.raises(warren.ProtocolError):
            list(parse_multipart(body[:cut], kind, ["/a"]))


def test_a_directory_goes_through_a_tar_and_back(tmp_path):
    source = tmp_path / "source"
    (source / "sub/deep").mkdir(parents=True)
    (source / "sub/file").write_bytes(b"x" * 1000)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / ("long" * 40)).write_text("long")
    (source / "link").symlink_to("sub/file")
    (source / "skipped").write_text("no")
    data = b"".join(_archive.tar_of_directory(source, lambda name: name != "skipped"))
    files, size, left_out = _archive.unpack(io.BytesIO(data), tmp_path / "copy")
    copy = tmp_path / "copy"
    assert (files, left_out) == (3, []) and size == 1000 + 10 + 4
    assert (copy / "sub/file").read_bytes() == b"x" * 1000 and (copy / "sub/deep").is_dir()
    assert os.readlink(copy / "link") == "sub/file" and not (copy / "skipped").exists()
    assert (copy / "run.sh").stat().st_mode & 0o777 == 0o755


def hostile_tar(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, link, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, link, len(data), 0o6777
            tar.addfile(info, io.BytesIO(data))
    out.seek(0)
    return out


def test_a_hostile_archive_writes_nothing_outside(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    file, sym, hard = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
    tar = hostile_tar(
        ("../outside", file, "", b"evil"), ("up", sym, "..", b""), ("up/outside", file, "", b"evil"),
        ("abs", sym, str(outside), b""), ("abs", file, "", b"good"),
        ("hard", hard, "../outside", b""), ("in", sym, "abs", b""), ("in", file, "", b"own"),
        ("pipe", tarfile.FIFOTYPE, "", b""))
    files, _, left_out = _archive.unpack(tar, tmp_path / "top")
    assert outside.read_text() == "mine"
    assert sorted(left_out) == ["../outside", "abs", "hard", "pipe", "up"]
    assert (tmp_path / "top/abs").read_text() == "good" and (tmp_path / "top/in").read_text() == "own"
    assert (tmp_path / "top/up/outside").read_text() == "evil"  # a directory of that name, inside
    assert (tmp_path / "top/abs").stat().st_mode & 0o7022 == 0
    assert files == 3


# -- sandboxes

def test_the_socket_needs_no_key(daemon):
    client = warren.Client(f"unix://{daemon.dir}/run/warren.sock")
    assert client.health()["status"] == "ok" and client.host()["cpus"] > 0


def test_the_environment_says_where(daemon, monkeypatch):
    monkeypatch.setenv("WARREN_URL", daemon.url)
    monkeypatch.setenv("WARREN_API_KEY", daemon.key)
    assert warren.Client().health()["status"] == "ok"
    monkeypatch.setenv("WARREN_API_KEY", "warren_wrong")
    with pytest.raises(warren.Unauthorized):
        warren.Client().sandboxes.list()


def test_a_sandboxs_life(client):
    with client.sandboxes.create("tiny", name="sdk-life", env={"A": "1"}, memory_mb=64) as box:
        assert box.state == "running" and box.name == "sdk-life" and box.info.memory_mb == 64
        assert box.info.created_at.tzinfo is not None
        assert client.sandboxes.get("sdk-life").id == box.id
        assert box.update(metadata={"k": "v"}).metadata == {"k": "v"}
        assert box.set_timeout(600).expires_at is not None
        assert box.set_timeout(None).expires_at is None
        box.run("echo kept > /root/note", check=True)
        assert box.stop().state == "stopped" and box.start().state == "running"
        assert box.pause().state == "paused" and box.resume().state == "running"
        kept = box.checkpoint("warm", comment="c", metadata={"k": "v"}, memory=True)
        assert kept.memory and kept.memory_bytes > 0 and [c.id for c in box.checkpoints()] == [kept.id]
        assert box.restore("warm").state == box.restore(kept.id, memory=False).state == "running"
        for copy in box.fork(2, memory=True):
            assert copy.state == "running" and copy.id != box.id
            copy.delete()
        assert box.pause().state == "paused" and box.resume(memory=False).state == "running"
        assert box.run("cat /root/note; echo $A").stdout == "kept\n1\n"
        assert box.usage().pids >= 0 and box.refresh().state == "running"
    with pytest.raises(warren.SandboxGone) as gone:
        box.refresh()
    assert gone.value.cause == "deleted" and gone.value.ended_at
    box.delete()  # once more is fine
    with pytest.raises(warren.NotFound):
        client.sandboxes.delete("never-was")


def test_a_creation_that_comes_twice_makes_one(client):
    first = client.create("tiny", idempotency_key="sdk-once")
    assert client.create("tiny", idempotency_key="sdk-once").id == first.id
    first.delete()


def test_a_lease_keeps_it_awake(shared):
    lease = shared.keep_awake(600, "a test")
    assert [(e.id, e.reason) for e in shared.leases()] == [(lease.id, "a test")]
    until_when = shared.refresh().awake_until
    assert isinstance(until_when, datetime.datetime) and until_when > lease.created_at
    shared.end_lease(lease.id)
    assert shared.leases() == [] and shared.refresh().awake_until is None


def test_two_who_change_one_sandbox(client):
    with client.create("tiny") as box:
        box.refresh()
        seen = box.etag
        client.sandboxes.get(box.id).update(metadata={"by": "another"})
        for change in (lambda: box.update(name="mine", if_match=seen),
                       lambda: box.stop(if_match=seen), lambda: box.delete(if_match=seen)):
            with pytest.raises(warren.Conflict) as stale:
                change()
            assert stale.value.code == "precondition_failed"
        box.refresh()
        assert box.update(metadata={}, if_match=box.etag).metadata == {}


def test_lists_go_over_pages(client):
    made = [client.create("tiny", metadata={"batch": "sdk"}) for _ in range(3)]
    try:
        query = {"metadata": {"batch": "sdk"}, "page": 2}
        assert [s.id for s in client.sandboxes.list(order="asc", **query)] == [s.id for s in made]
        assert len(client.sandboxes.list(state=["running", "stopped"], **query)) == 3
        assert client.sandboxes.list(state="stopped", **query) == []
    finally:
        for one in made:
            client.sandboxes.delete(one.id)


# -- commands

def test_run(shared):
    result = shared.run("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("out\n", "err\n", 3, False)
    assert shared.run(["echo", "a b", "$HOME"]).stdout == "a b $HOME\n"
    assert shared.run("pwd; echo $X; id -un; cat", cwd="/tmp", env={"X": "y"}, user="user",
                      stdin="in").stdout == "/tmp\ny\nuser\nin"
    assert shared.run("head -c 100 /dev/zero | tr '\\0' x", output_limit=10).truncated
    with pytest.raises(warren.CommandError) as failed:
        shared.run("echo why >&2; exit 4", check=True)
    assert failed.value.result.exit_code == 4 and "why" in str(failed.value)
    with pytest.raises(warren.InvalidRequest) as missing:
        shared.run(["no-such-program"])
    assert missing.value.code == "program_not_found"


def test_a_command_that_takes_too_long_is_killed(shared):
    result = shared.run("sleep 1000", timeout=0.05)
    assert result.reason == "timeout" and not result.ok


def test_run_with_callbacks(shared):
    out, err = [], []
    result = shared.run("echo one; echo two >&2; echo three", on_stdout=out.append,
                        on_stderr=err.append)
    assert "".join(out) == result.stdout == "one\nthree\n" and "".join(err) == "two\n"
    assert result.ok and result.pid > 0 and result.process is not None
    halves = []  # of a character: the callback gets it whole
    shared.run("printf '\\303'; sleep 0.05; printf '\\274'", on_stdout=halves.append)
    assert halves == ["ü"]
    short = shared.run("echo 0123456789", on_stdout=out.append, output_limit=4)
    assert short.stdout == "0123" and short.truncated


def test_stream(shared):
    with shared.stream("printf a; printf '\\377' >&2; exit 5") as events:
        seen = list(events)
    assert seen[0].type == "start" and seen[0].pid > 0
    assert seen[-1].type == "exit" and seen[-1].exit_code == 5 and events.exit is seen[-1]
    assert b"".join(e.data for e in seen if e.type == "stderr") == b"\xff"
    assert [e.text for e in seen if e.type == "stdout"] == ["a"]


def test_a_stream_that_is_left_does_not_end_the_command(shared):
    shared.run("mkfifo /root/gate", check=True)
    events = shared.stream("echo hi; read line < /root/gate; echo $line", label="left")
    assert any(event.type == "stdout" for event in events)
    events.close()
    assert list(events) == []
    process = shared.processes.get(events.process)
    assert process.info.state == "running" and process.info.label == "left"
    shared.run("echo through > /root/gate", check=True)
    assert process.result().stdout == "hi\nthrough\n"
    process.kill()  # one that has ended is fine


def test_processes(shared):
    process = shared.spawn("read a; echo got $a; read b; echo and $b; cat", stdin=True, label="talk")
    process.write("x\n")
    process.write(b"y\n")
    process.close_stdin()
    assert process.result(check=True).stdout == "got x\nand y\n"
    assert process.wait().exit_code == 0 and process.refresh().state == "ended"
    assert process.number in [p.process for p in shared.processes.list()]
    assert [p.label for p in shared.processes.list() if p.process == process.number] == ["talk"]
    again = shared.processes.get(process.number)
    assert b"".join(e.data for e in again.output(since=4, follow=False)) == b"x\nand y\n"
    assert repr(again).startswith(f"<Process {process.number}")


def test_signals_and_terminals(shared):
    sleeper = shared.processes.start(["sleep", "1000"])
    assert sleeper.pid in [p.pid for p in shared.processes.list(all=True)]
    with pytest.raises(warren.RequestTimeout):
        sleeper.wait(timeout=0.05)
    sleeper.signal("SIGTERM", scope="tree")
    assert sleeper.wait().signal == "SIGTERM"
    other = shared.processes.start(["sleep", "1000"])
    other.kill()
    assert other.wait().signal == "SIGKILL"
    screen = shared.processes.start("read x; stty size", pty={"rows": 10, "cols": 20})
    screen.resize(33, 44)
    screen.write("go\n")
    assert "33 44" in screen.result().stdout


def test_a_stream_survives_a_restart_of_the_daemon(fresh):
    """What was printed while nobody listened arrives too, once and in order."""
    client = warren.Client(fresh.url, fresh.key, retries=8)
    box = client.create("tiny")
    process = box.processes.start("i=0; while read x; do i=$((i+1)); echo line $i; done", stdin=True)
    seen = []
    with process.output() as events:
        process.write("a\nb\n")
        while "line 2\n" not in "".join(seen):
            seen.append(next(events).text)
        fresh.process.send_signal(signal.SIGKILL)
        fresh.process.wait()
        fresh.start()
        until(lambda: client.health()["status"] == "ok", "the daemon")
        process.write("c\n", eof=True)
        seen += [e.text for e in events]
    assert "".join(seen) == "line 1\nline 2\nline 3\n"
    assert events.exit.exit_code == 0


# -- events, keys, images

def test_events(client):
    with client.create("tiny") as box:
        with client.events.follow(sandbox=box.id) as feed:
            first = next(feed)
            assert first.type == "sandbox.created" and first.sandbox == box.id and first.seq > 0
            box.stop()
            assert any(e.type == "sandbox.stopped" for e in feed)
        listed = client.events.list(since=first.seq - 1, sandbox=box.id, limit=1)
        assert [e.seq for e in listed] == [first.seq]


def test_keys(client, daemon):
    key = client.keys.create("sdk")
    other = warren.Client(daemon.url, key.key)
    assert isinstance(other.sandboxes.list(), list)
    assert key.id in [k.id for k in client.keys.list()]
    client.keys.delete(key.id)
    with pytest.raises(warren.Unauthorized):
        other.sandboxes.list()


def test_images(client, tiny_tar):
    with open(tiny_tar, "rb") as file:
        assert client.images.put("sdk/copy", file).name.startswith("sdk/copy")
    try:
        assert any(i.name.startswith("sdk/copy") for i in client.images.list())
        with client.create("sdk/copy") as box:
            assert box.run("echo hi").stdout == "hi\n"
    finally:
        until(lambda: not client.sandboxes.list(state="deleting"), "the sandbox's end")
        client.images.delete("sdk/copy")
    with pytest.raises(warren.NotFound):
        client.create("sdk/copy")


def test_a_refused_upload_is_told_by_its_own_error(client):
    """The daemon answers before it has read everything: the answer counts, not the broken pipe."""
    def endless():
        for _ in range(2000):
            yield b"not a tar " * 10000
    with pytest.raises(warren.WarrenError) as caught:
        client.images.put("sdk-bad", endless())
    assert caught.value.code in ("invalid_image", "connection_failed"), caught.value


# -- the package

EXAMPLES = sorted(p.name for p in (SDK / "examples").glob("*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(daemon, name):
    env = {**os.environ, "WARREN_URL": daemon.url, "WARREN_API_KEY": daemon.key,
           "PYTHONPATH": str(SDK)}
    done = subprocess.run(["/usr/bin/python3", "-B", str(SDK / "examples" / name)], env=env,
                          capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("done"), done.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


def test_the_readme_runs(daemon):
    """Its first block of code, as it is."""
    text = (SDK / "README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    env = {**os.environ, "WARREN_URL": daemon.url, "WARREN_API_KEY": daemon.key,
           "PYTHONPATH": str(SDK)}
    done = subprocess.run(["/usr/bin/python3", "-B", "-c", code], env=env, capture_output=True,
                          text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "42" in done.stdout


def test_nothing_is_left_open(daemon):
    """Kept connections go with their client, streams with their end or close."""
    code = """
import sys, warren_sandbox
sys.unraisablehook = lambda it: (print("left open:", it.exc_value), sys.stdout.flush())
client = warren_sandbox.Client()
with client.create("tiny") as box:
    box.run("true", on_stdout=print)
    with box.stream("echo a; sleep 5") as events:
        next(events)
del client, box, events
"""
    env = {**os.environ, "WARREN_URL": daemon.url, "WARREN_API_KEY": daemon.key,
           "PYTHONPATH": str(SDK)}
    done = subprocess.run(["/usr/bin/python3", "-B", "-W", "error::ResourceWarning", "-c", code],
                          env=env, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def test_only_the_standard_library_is_used():
    allowed = set(sys.stdlib_module_names) | {"warren_sandbox"}
    import ast
    for path in (SDK / "warren_sandbox").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [a.name.split(".")[0] for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module.split(".")[0]]
            else:
                continue
            assert set(names) <= allowed, (path.name, names)
    assert pathlib.Path(SDK / "warren_sandbox/py.typed").exists()
