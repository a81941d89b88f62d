"""The daemon's log and a sandbox's, as streams of lines."""
import base64
import json
import subprocess

from harness import BUILD, until


def lines(api, path):
    reply = api.call("GET", path)
    assert reply.status == 200 and reply.headers["Content-Type"] == "application/x-ndjson", reply
    return [json.loads(line) for line in reply.body.splitlines()]


def test_the_daemon_s_log(api, tiny):
    api.call("GET", "/v1/sandboxes", headers={"X-Request-Id": "look-for-me"})
    got = lines(api, "/v1/logs")
    assert all({"time", "level", "module", "message"} <= set(line) for line in got)
    assert any(line["message"] == "ready" for line in got)
    about = lines(api, f"/v1/logs?sandbox={tiny}")
    assert about and all(line["sandbox"] == tiny for line in about)
    assert [x["level"] for x in lines(api, "/v1/logs?level=error")] == \
        ["error" for x in got if x["level"] == "error"]
    cut = got[len(got) // 2]["time"]
    assert all(line["time"] >= cut for line in lines(api, f"/v1/logs?since={cut}"))
    assert lines(api, "/v1/logs?since=2100-01-01T00:00:00Z") == []
    for bad in ("since=yesterday", "level=loud", "follow=perhaps", "other=1"):
        api.refused(400, "invalid_query", "GET", f"/v1/logs?{bad}")
    api.refused(404, "sandbox_not_found", "GET", "/v1/logs?sandbox=no-such-name")


def test_every_line_of_a_request_carries_its_id(api):
    with api.stream("GET", "/v1/logs?follow=true") as stream:
        made = api.call("POST", "/v1/sandboxes", {"image": "tiny"}, headers={"X-Request-Id": "story-1"})
        who = made.json["id"]
        line = stream.until(sandbox=who)
        assert line["req"] == "story-1"
        api.call("DELETE", f"/v1/sandboxes/{who}", headers={"X-Request-Id": "story-2"})
        assert stream.until(sandbox=who, message="deleted")["req"] == "story-2"


def test_a_member_sees_its_own_sandboxes_alone(daemon):
    admin = daemon.admin
    admin.ok("POST", "/v1/teams", {"name": "loggers"})
    key = admin.ok("POST", "/v1/keys", {"name": "member", "team": "loggers", "role": "member"})
    member = daemon.api.with_key(key["key"])
    mine = member.create(image="tiny")["id"]
    other = daemon.api.create(image="tiny")["id"]
    try:
        assert {line.get("sandbox") for line in lines(member, "/v1/logs")} == {mine}
        assert lines(member, f"/v1/logs?sandbox={other}") == []
        assert {mine, other} <= {line.get("sandbox") for line in lines(admin, "/v1/logs")}
        member.refused(404, "sandbox_not_found", "GET", f"/v1/sandboxes/{other}/logs")
    finally:
        member.delete(mine)
        daemon.api.delete(other)
    assert {line.get("sandbox") for line in lines(member, "/v1/logs")} == {mine}  # gone, still its own
    admin.ok("DELETE", f"/v1/keys/{key['id']}")
    admin.ok("DELETE", "/v1/teams/loggers")


def test_a_sandbox_s_log(api, tiny):
    api.exec(tiny, "echo one; echo two >&2")
    api.exec(tiny, ["printf", "\\377"])
    n = api.start(tiny, "echo three; cat", stdin=True)["process"]
    until(lambda: api.process(tiny, n)["output_bytes"] == 6, "its output")
    got = lines(api, f"/v1/sandboxes/{tiny}/logs")
    assert got[0]["event"] == "sandbox.created" and got[0]["process"] is None
    text = {(x["process"], x["type"]): x.get("text") for x in got if x["type"] != "event"}
    assert text[1, "stdout"] == "one\n" and text[1, "stderr"] == "two\n" and text[3, "stdout"] == "three\n"
    odd = next(x for x in got if x["process"] == 2 and x["type"] == "stdout")
    assert base64.b64decode(odd["text_b64"]) == b"\377"
    ended = [x["process"] for x in got if x.get("event") == "process.ended"]
    assert ended == [1, 2]
    assert [x["process"] for x in got if x.get("event") == "process.started"] == [1, 2, 3]
    assert lines(api, f"/v1/sandboxes/{tiny}/logs?since=2100-01-01T00:00:00Z")[-1]["process"] in (None, 3)
    api.refused(404, "sandbox_not_found", "GET", "/v1/sandboxes/nope/logs")


def test_a_sandbox_s_log_is_followed_across_a_restart_to_its_end(api):
    who = api.create(image="tiny")["id"]
    with api.stream("GET", f"/v1/sandboxes/{who}/logs?follow=true") as stream:
        stream.until(event="sandbox.created")
        n = api.start(who, "echo live; cat >/dev/null", stdin=True)["process"]
        line = stream.until(type="stdout", process=n)
        assert line["text"] == "live\n"
        api.stdin(who, n, b"", eof=True)
        assert stream.until(event="process.ended", process=n)["data"]["exit_code"] == 0
        api.exec(who, "echo by exec")
        assert stream.until(type="stdout")["text"] == "by exec\n"
        api.ok("POST", f"/v1/sandboxes/{who}/stop")
        stream.until(event="sandbox.stopped")
        assert lines(api, f"/v1/sandboxes/{who}/logs")[-1]["event"] == "sandbox.stopped"
        api.ok("POST", f"/v1/sandboxes/{who}/start")
        stream.until(event="sandbox.started")
        api.exec(who, "echo again")
        assert stream.until(type="stdout")["text"] == "again\n"
        api.delete(who)
        stream.until(event="sandbox.deleted")
        assert list(stream) == []
    api.refused(404, "sandbox_gone", "GET", f"/v1/sandboxes/{who}/logs")


def test_the_command_line(daemon, api, tiny):
    api.exec(tiny, "echo one; echo two >&2")
    n = api.start(tiny, "echo three")["process"]
    api.wait(tiny, n)
    result = daemon.cli("logs", tiny)
    assert result.returncode == 0 and result.stdout == "one\nthree\n" and result.stderr == "two\n"
    assert daemon.cli("logs", tiny, n).stdout == "three\n"
    assert daemon.cli("logs", tiny, n, "--since", "2").stdout == "ree\n"
    assert "process.started" in daemon.cli("logs", "--events", tiny).stderr
    own = daemon.cli("logs", "--since", "1h")
    assert own.returncode == 0 and " ready listen=" in own.stdout
    assert all(json.loads(x)["level"] in ("warn", "error")
               for x in daemon.cli("--json", "logs", "--level", "warn").stdout.splitlines())
    assert daemon.cli("logs", "--since", "soon").returncode != 0
    with subprocess.Popen([str(BUILD / "warren"), "logs", "-f", tiny], env=daemon.cli_environment(),
                          stdout=subprocess.PIPE, text=True) as follow:
        assert follow.stdout.readline() == "one\n" and follow.stdout.readline() == "three\n"
        api.exec(tiny, "echo later")
        assert follow.stdout.readline() == "later\n"
        follow.terminate()
