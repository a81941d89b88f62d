"""E2B's control plane as it is on the wire: what its own client has no method for, or no test of."""
import time

import pytest

from envd_kit import Envd, e2b, envd, made, put  # noqa: F401 (fixtures)
from harness import until


@pytest.fixture
def another(e2b):
    """More sandboxes, with these members; gone after the test."""
    ids = []

    def make_one(path="/v2/sandboxes", **more):
        reply = e2b("POST", path, {"templateID": "base", **more})
        assert reply.status == 201, reply
        ids.append(reply.json["sandboxID"])
        return reply.json
    yield make_one
    for i in ids:
        e2b("DELETE", f"/sandboxes/{i}")


def test_resume_and_what_is_refused_of_a_life(e2b, another):
    who = another()["sandboxID"]
    assert e2b("POST", f"/sandboxes/{who}/resume", {"timeout": 60}).status == 409
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 204
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 409
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "paused"
    resumed = e2b("POST", f"/sandboxes/{who}/resume", {"timeout": 60})
    assert resumed.status == 201 and resumed.json["sandboxID"] == who
    for path in ("fork", "snapshots"):
        r = e2b("POST", f"/sandboxes/{who}/{path}", {})
        assert r.status == 400 and r.json["code"] == 400 and "memory" in r.json["message"], r
        assert e2b("POST", f"/sandboxes/nosuchsandboxatall00/{path}", {}).status == 404
    assert e2b("GET", "/snapshots").json == []
    assert e2b("POST", "/sandboxes/nosuchsandboxatall00/resume", {}).json["code"] == 404


@pytest.mark.parametrize("more", [
    {"autoPauseMemory": False}, {"autoPause": True},
    {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}},
    {"timeout": 0}, {"timeout": "60"}, {"metadata": {"a": 1}}, {"metadata": {"warren.e2b.open": "1"}}, {"envVars": []},
    {"templateID": ""}, {"templateID": 5}])
def test_a_create_that_cannot_be_kept_is_refused(e2b, more):
    r = e2b("POST", "/v2/sandboxes", {"templateID": "base", **more})
    assert r.status == 400 and r.json["code"] == 400 and r.json["message"], r


def test_a_pause_at_the_end_of_a_life(e2b, another, daemon):
    who = another(timeout=1, autoPause=True, autoPauseMemory=False)
    assert e2b("GET", f"/sandboxes/{who['sandboxID']}").json["lifecycle"] == {"onTimeout": "pause", "autoResume": False}
    put(Envd(daemon, who), "kept.txt", b"kept")
    until(lambda: e2b("GET", f"/sandboxes/{who['sandboxID']}").json["state"] == "paused", "the pause")
    assert Envd(daemon, who).call("GET", "/health").status == 502
    assert e2b("POST", f"/v2/sandboxes/{who['sandboxID']}/connect", {"timeout": 60}).status == 201
    assert Envd(daemon, who).call("GET", "/files?path=kept.txt").body == b"kept"


def test_a_touch_resumes_one_that_wants_it(e2b, another, daemon):
    made = another(autoResume={"enabled": True}, timeout=120)
    who, inside = made["sandboxID"], Envd(daemon, made)
    assert e2b("GET", f"/sandboxes/{who}").json["lifecycle"]["autoResume"] is True
    assert "warren.e2b.wakes" not in e2b("GET", f"/sandboxes/{who}").json["metadata"]
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 204
    for stranger in (None, "wrong"):
        assert inside.rpc("process.Process/List", headers={"X-Access-Token": stranger}).status == 502
        assert inside.call("GET", "/files?path=x&signature=v1_x", headers={"X-Access-Token": stranger}).status == 502
    assert inside.call("GET", "/health").status == 502
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "paused"
    assert inside.rpc("process.Process/List").status == 200
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "running"


def test_the_network_can_only_be_closed(e2b, made):
    path = f"/sandboxes/{made['sandboxID']}/network"
    for body in ({"allow_internet_access": False}, {"denyOut": ["0.0.0.0/0"]}):
        assert e2b("PUT", path, body).status == 204
    for body in ({}, {"allowOut": ["1.1.1.1"], "denyOut": ["0.0.0.0/0"]}, {"rules": {"a.b": []}, "allow_internet_access": False},
                 {"egressProxy": {"address": "x:1"}}):
        assert (e2b("PUT", path, body).status, e2b("PUT", path, body).json["code"]) == (400, 400), body


def test_curves_of_what_is_used(e2b, made, envd):
    envd.stream("process.Process/Start", envd.start("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", stdin=False))
    who, now = made["sandboxID"], int(time.time())
    found = e2b("GET", f"/sandboxes/{who}/metrics").json
    assert found and all(set(m) == {"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal",
                                    "memCache", "diskUsed", "diskTotal"} for m in found)
    assert any(m["cpuUsedPct"] > 0 for m in found) and found[-1]["memUsed"] > 0
    assert e2b("GET", f"/sandboxes/{who}/metrics?start={now + 5000}").json == []
    assert e2b("GET", f"/sandboxes/{who}/metrics?end={now - 50000}").json == []
    assert e2b("GET", f"/sandboxes/{who}/metrics?start={now - 50000}&end={now + 50000}").json != []
    assert e2b("GET", f"/sandboxes/{who}/metrics?start=5&end=4").status == 400
    several = e2b("GET", f"/sandboxes/metrics?sandbox_ids={who},nosuchsandboxatall00,x").json["sandboxes"]
    assert list(several) == [who]
    assert e2b("GET", "/sandboxes/metrics").status == 400
    assert e2b("GET", "/sandboxes/metrics?sandbox_ids=" + ",".join("abcd" for _ in range(101))).status == 400


def test_a_teams_curves(e2b, made):
    team, = e2b("GET", "/teams").json
    curve = e2b("GET", f"/teams/{team['teamID']}/metrics").json
    assert curve[-1]["concurrentSandboxes"] >= 1 and any(m["sandboxStartRate"] > 0 for m in curve)
    most = e2b("GET", f"/teams/{team['teamID']}/metrics/max?metric=concurrent_sandboxes").json
    assert most["value"] == max(m["concurrentSandboxes"] for m in curve)
    assert e2b("GET", f"/teams/{team['teamID']}/metrics/max?metric=sandbox_start_rate").json["value"] > 0
    assert e2b("GET", f"/teams/{team['teamID']}/metrics/max").status == 400
    assert e2b("GET", "/teams/another/metrics").status == 403


def test_the_log_has_what_happened_and_what_was_printed(e2b, another, daemon):
    made = another()
    who, inside = made["sandboxID"], Envd(daemon, made)
    inside.stream("process.Process/Start", inside.start("echo first; echo second >&2; exit 3", stdin=False))
    logs = e2b("GET", f"/v2/sandboxes/{who}/logs").json["logs"]
    told = [(m["level"], m["fields"]["source"], m["message"]) for m in logs]
    assert told[0][1:2] == ("sandbox",) and "sandbox.created" in told[0][2]
    assert ("info", "stdout", "first") in told and ("warn", "stderr", "second") in told
    assert ("warn", "process", "ended with 3") in told
    assert [m["timestamp"] for m in logs] == sorted(m["timestamp"] for m in logs)
    back = e2b("GET", f"/v2/sandboxes/{who}/logs?direction=backward&limit=2").json["logs"]
    assert back == logs[::-1][:2]
    assert {m["level"] for m in e2b("GET", f"/v2/sandboxes/{who}/logs?level=warn").json["logs"]} == {"warn"}
    assert [m["message"] for m in e2b("GET", f"/v2/sandboxes/{who}/logs?search=second").json["logs"]
            if m["fields"]["source"] != "process"] == ["second"]
    assert e2b("GET", f"/v2/sandboxes/{who}/logs?cursor={int(time.time() * 1000) + 100000}").json["logs"] == []
    old = e2b("GET", f"/sandboxes/{who}/logs?start=0&limit=1000").json
    assert "first" in [m["line"] for m in old["logs"]] and len(old["logEntries"]) == len(old["logs"])
    for query in ("direction=up", "level=loud", "limit=1001", "cursor=x"):
        assert e2b("GET", f"/v2/sandboxes/{who}/logs?{query}").status == 400, query
    e2b("DELETE", f"/sandboxes/{who}")
    assert "sandbox.deleted" in e2b("GET", f"/v2/sandboxes/{who}/logs").json["logs"][-1]["message"]
    assert e2b("GET", "/v2/sandboxes/nosuchsandboxatall00/logs").status == 404


def test_lists_by_template_and_time(e2b, another):
    first, second = another(metadata={"k 1": "v&2"}), another(metadata={"k 1": "v&2"})
    ids = {first["sandboxID"], second["sandboxID"]}
    mine = "metadata=k%2525201%3Dv%2525262"

    def listed(query):
        r = e2b("GET", f"/v2/sandboxes?{mine}&{query}")
        assert r.status == 200, r
        return [s["sandboxID"] for s in r.json]
    assert set(listed("template=base")) == ids and listed("template=other") == []
    started = e2b("GET", f"/sandboxes/{second['sandboxID']}").json["startedAt"]
    assert listed(f"startedAfter={started}") == [second["sandboxID"]]
    assert listed("startedAfter=2199-01-01T00:00:00Z") == []
    assert listed("order=asc") == listed("order=desc")[::-1]
    assert listed("state=paused") == [] and set(listed("state=running,paused")) == ids
    page = e2b("GET", f"/v2/sandboxes?{mine}&limit=1")
    rest = e2b("GET", f"/v2/sandboxes?{mine}&limit=1&nextToken={page.headers['X-Next-Token']}")
    assert {page.json[0]["sandboxID"], rest.json[0]["sandboxID"]} == ids and not rest.headers["X-Next-Token"]
    for query in ("order=up", "startedAfter=now", "limit=0", "limit=101", "state=dead", "nextToken=x", "metadata=x"):
        assert e2b("GET", f"/v2/sandboxes?{query}").status == 400, query
