"""E2B's control plane as it is on the wire: what its own client has no method for, or no test of."""
import json
import time
import uuid

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


@pytest.mark.parametrize("path", ["/v2/sandboxes", "/sandboxes"])
def test_a_create_with_a_key_of_its_own_is_done_once(e2b, path):
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = e2b("POST", path, {"templateID": "base", "timeout": 60}, headers=key)
    again = e2b("POST", path, {"templateID": "base", "timeout": 60}, headers=key)
    assert (first.status, again.status) == (201, 201) and again.headers["Idempotency-Replayed"] == "true"
    assert again.json == first.json
    assert e2b("POST", path, {"templateID": "base", "timeout": 61}, headers=key).status == 422
    assert e2b("DELETE", f"/sandboxes/{first.json['sandboxID']}").status == 204
    assert e2b("POST", path, {"templateID": "base", "timeout": 60}, headers=key).status == 404, "it is gone, and not made again"


def test_resume_and_what_is_refused_of_a_life(e2b, another):
    who = another()["sandboxID"]
    assert e2b("POST", f"/sandboxes/{who}/resume", {"timeout": 60}).status == 409
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 204
    assert e2b("POST", f"/sandboxes/{who}/pause", {"memory": False}).status == 409
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "paused"
    resumed = e2b("POST", f"/sandboxes/{who}/resume", {"timeout": 60})
    assert resumed.status == 201 and resumed.json["sandboxID"] == who
    for path in ("fork", "snapshots"):
        assert e2b("POST", f"/sandboxes/nosuchsandboxatall00/{path}", {}).status == 404
    for bad in ({"count": 0}, {"count": 101}, {"timeout": 0}, {"count": "2"}):
        assert e2b("POST", f"/sandboxes/{who}/fork", bad).status == 400
    assert e2b("POST", f"/sandboxes/{who}/snapshots", {"name": "no/such/name"}).status == 400
    assert e2b("POST", "/sandboxes/nosuchsandboxatall00/resume", {}).json["code"] == 404


def test_one_that_is_paused_is_forked_as_often_as_one_likes(e2b, api, another):
    """Its clients know of no checkpoints, so none is left."""
    who = another()["sandboxID"]
    paused = e2b("POST", f"/sandboxes/{who}/pause", {})
    if paused.status == 501:
        pytest.skip("no working CRIU here")
    for _ in range(2):
        made = e2b("POST", f"/sandboxes/{who}/fork", {"timeout": 60, "count": 2})
        assert made.status == 201, made
        for one in made.json:
            copy = one["sandbox"]["sandboxID"]
            assert e2b("GET", f"/sandboxes/{copy}").json["state"] == "running"
            assert e2b("DELETE", f"/sandboxes/{copy}").status == 204
    assert e2b("GET", f"/sandboxes/{who}").json["state"] == "paused"
    assert e2b("POST", f"/sandboxes/{who}/resume", {"timeout": 60}).status == 201
    assert api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"] == []


def test_snapshots_have_ids_and_names_and_pages(e2b, another):
    who = another()["sandboxID"]
    made = [e2b("POST", f"/sandboxes/{who}/snapshots", body).json for body in ({}, {"name": "mark"}, {"name": "mark"})]
    ids = [s["snapshotID"] for s in made]
    assert made[0]["names"] == [] and made[1]["names"] == made[2]["names"] == ["default/mark:default"]
    first = e2b("GET", f"/snapshots?sandboxID={who}&limit=2")
    assert [s["snapshotID"] for s in first.json] == ids[:0:-1]
    rest = e2b("GET", f"/snapshots?sandboxID={who}&nextToken={first.headers['X-Next-Token']}")
    assert [s["snapshotID"] for s in rest.json] == ids[:1] and "X-Next-Token" not in rest.headers
    assert [s["snapshotID"] for s in e2b("GET", "/snapshots?name=mark").json] == ids[:0:-1]
    copy = e2b("POST", "/v2/sandboxes", {"templateID": "mark:default", "timeout": 60, "metadata": {"a": "b"}})
    assert copy.status == 201 and copy.json["sandboxID"] != who
    assert e2b("GET", f"/sandboxes/{copy.json['sandboxID']}").json["metadata"] == {"a": "b"}
    assert e2b("DELETE", f"/sandboxes/{copy.json['sandboxID']}").status == 204
    for i in ids:
        assert e2b("DELETE", f"/templates/{i}").status == 204
        assert e2b("DELETE", f"/templates/{i}").status == 404
    assert e2b("GET", f"/snapshots?sandboxID={who}").json == []


@pytest.mark.parametrize("more", [
    {"autoPauseMemory": False},
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


@pytest.mark.parametrize("body, native, told", [
    ({}, "open", ([], [])),
    ({"allow_internet_access": True, "allowOut": [], "denyOut": None}, "open", ([], [])),
    ({"allow_internet_access": False}, "none", ([], ["0.0.0.0/0"])),
    ({"denyOut": ["0.0.0.0/0"]}, "none", ([], ["0.0.0.0/0"])),
    ({"denyOut": ["0.0.0.0/0"], "allowOut": ["1.1.1.1", "*.Good.test", "10.0.0.0/8"]},
     {"rules": ["allow 1.1.1.1 any", "allow *.Good.test", "allow 10.0.0.0/8 any", "deny *"]},
     (["1.1.1.1", "*.good.test", "10.0.0.0/8"], ["0.0.0.0/0"])),
    ({"allow_internet_access": False, "allowOut": ["good.test"]}, {"rules": ["allow good.test", "deny *"]},
     (["good.test"], ["0.0.0.0/0"])),
    ({"allowOut": ["1.1.1.1"]}, {"rules": ["allow 1.1.1.1 any", "allow *"]}, (["1.1.1.1"], [])),
    ({"allowOut": ["0.0.0.0/0"], "denyOut": ["0.0.0.0/0"]}, {"rules": ["allow *", "deny *"]}, (["0.0.0.0/0"], ["0.0.0.0/0"])),
    ({"denyOut": ["8.8.8.8", "2001:db8::/32"]}, {"rules": ["deny 8.8.8.8", "deny 2001:db8::/32", "allow *"]},
     ([], ["8.8.8.8", "2001:db8::/32"])),
])
def test_a_network_is_replaced(e2b, daemon, made, body, native, told):
    path = f"/sandboxes/{made['sandboxID']}"
    answer = e2b("PUT", path + "/network", body)
    assert answer.status == 204, answer.json
    assert daemon.api.get(made["sandboxID"])["network"] == native
    info = e2b("GET", path).json
    assert (info["network"]["allowOut"], info["network"]["denyOut"]) == told
    assert info["allowInternetAccess"] is (native != "none")


@pytest.mark.parametrize("body", [
    {"allowOut": ["good.test"]}, {"denyOut": ["good.test"]}, {"denyOut": ["1.1.1.1 any"]}, {"denyOut": [""]},
    {"allowOut": ["1.1.1.1\ndeny *"]}, {"allowOut": "1.1.1.1"}, {"allowOut": [1]}, {"denyOut": ["0.0.0.0/0"], "allowOut": ["a b"]},
    {"denyOut": ["0.0.0.0/0"], "allowOut": ["..."]}, {"allow_internet_access": "no"}, {"denyOut": ["1.1.1.1"] * 300},
    {"denyOut": ["1.1.1.1/33"]}, {"denyOut": ["9" * 70000]},
])
def test_what_is_no_network_changes_nothing(e2b, daemon, made, body):
    path = f"/sandboxes/{made['sandboxID']}/network"
    assert e2b("PUT", path, {"denyOut": ["8.8.8.8"]}).status == 204
    before = daemon.api.get(made["sandboxID"])["network"]
    answer = e2b("PUT", path, body)
    assert (answer.status, answer.json["code"]) == (400, 400), answer.json
    assert daemon.api.get(made["sandboxID"])["network"] == before


@pytest.mark.parametrize("proxy, lists, native, told", [
    ({"address": "proxy.example.com:1080"}, {}, {"preset": "open", "proxy": "socks5://proxy.example.com:1080"},
     {"address": "proxy.example.com:1080"}),
    ({"address": "[2001:db8::1]:9", "username": "a:b@c", "password": "p w/%"}, {"denyOut": ["8.8.8.8"]}, None, None),
    ({"address": "[2001:db8::1]:9", "username": "a@c", "password": "p w/%:"}, {"denyOut": ["8.8.8.8"]},
     {"rules": ["deny 8.8.8.8", "allow *"], "proxy": "socks5://a%40c@[2001:db8::1]:9"}, {"address": "[2001:db8::1]:9", "username": "a@c"}),
    ({"address": "203.0.113.9:1080", "username": "u"}, {"allowOut": ["good.test"], "denyOut": ["0.0.0.0/0"]},
     {"rules": ["allow good.test", "deny *"], "proxy": "socks5h://u@203.0.113.9:1080"},
     {"address": "203.0.113.9:1080", "username": "u"}),
    (None, {}, "open", None),
    ({"address": "no-port"}, {}, None, None), ({}, {}, None, None), ("x:1", {}, None, None), ({"address": 1}, {}, None, None),
    ({"address": "a.test:1\nallow *"}, {}, None, None), ({"address": "u@a.test:1"}, {}, None, None),
    ({"address": "a.test:1", "password": "p"}, {}, None, None), ({"address": "a.test:1", "username": "u" * 256}, {}, None, None),
])
def test_a_proxy_of_its_own(e2b, daemon, made, proxy, lists, native, told):
    """It is told without the password; what is none changes nothing."""
    path = f"/sandboxes/{made['sandboxID']}"
    assert e2b("PUT", path + "/network", {"allow_internet_access": False}).status == 204
    answer = e2b("PUT", path + "/network", {"egressProxy": proxy, **lists})
    assert answer.status == (204 if native else 400), answer.json
    assert daemon.api.get(made["sandboxID"])["network"] == (native or "none")
    assert e2b("GET", path).json["network"].get("egressProxy") == told
    made_with = e2b("POST", "/v2/sandboxes", {"templateID": "base", "network": {"egressProxy": proxy, **lists}})
    assert made_with.status == (201 if native else 400)
    if native:
        assert daemon.api.get(made_with.json["sandboxID"])["network"] == native
        e2b("DELETE", f"/sandboxes/{made_with.json['sandboxID']}")


def headers(**more):
    return [{"transform": {"headers": more}}]


@pytest.fixture(scope="module")
def secret(daemon):
    daemon.api.ok("POST", "/v1/secrets", {"name": "e2b-key", "value": "never shown"})
    yield "${e2b.secrets.e2b-key}"
    daemon.api.ok("DELETE", "/v1/secrets/e2b-key")


def test_headers_become_bindings_and_are_told_back(e2b, daemon, made, secret):
    """An exact host before those below one; of two entries the later has the last word."""
    path = f"/sandboxes/{made['sandboxID']}"
    rules = {"*.good.test": headers(**{"X-A": "wide"}),
             "API.good.test": headers(**{"X-A": "first"}) + headers(**{"X-A": "a b", "Authorization": f"Bearer {secret}"})}
    answer = e2b("PUT", path + "/network", {"rules": rules})
    assert answer.status == 204, answer.json
    found = [(b["host"], b["header"], b.get("value"), b.get("secret"), b["format"])
             for b in daemon.api.get(made["sandboxID"])["bindings"]]
    assert found == [("api.good.test", "X-A", "a b", None, "{}"),
                     ("api.good.test", "Authorization", None, "e2b-key", "Bearer {}"),
                     ("api.good.test", "X-A", "first", None, "{}"), ("*.good.test", "X-A", "wide", None, "{}")]
    info = e2b("GET", path).json["network"]
    assert info["rules"]["*.good.test"] == rules["*.good.test"]
    told = info["rules"]["api.good.test"][0]["transform"]["headers"]
    assert told["Authorization"] == f"Bearer {secret}" and "never shown" not in str(info)
    assert e2b("PUT", path + "/network", {}).status == 204
    assert daemon.api.get(made["sandboxID"])["bindings"] == []
    assert e2b("GET", path).json["network"]["rules"] == {}


def test_headers_open_nothing(e2b, daemon, made):
    """Of what is denied, they are not kept."""
    path = f"/sandboxes/{made['sandboxID']}/network"
    for allowed, rule, kept in ((["good.test"], "good.test", ["good.test"]), (["*.good.test"], "a.good.test", ["a.good.test"]),
                                (["a.good.test", "b.good.test"], "*.good.test", ["a.good.test", "b.good.test"]),
                                (["*.good.test"], "*.b.good.test", ["*.b.good.test"]), (["*.good.test"], "good.test", []),
                                (["other.test", "1.1.1.1"], "good.test", []), ([], "good.test", []),
                                (["0.0.0.0/0"], "good.test", ["good.test"])):
        body = {"allowOut": allowed, "denyOut": ["0.0.0.0/0"], "rules": {rule: headers(a="b")}}
        assert e2b("PUT", path, body).status == 204
        assert [b["host"] for b in daemon.api.get(made["sandboxID"])["bindings"]] == kept, body


@pytest.mark.parametrize("rules", [
    [], {"good.test": {}}, {"good.test": ["x"]}, {"good.test": [{"transform": {"headers": ["a"]}}]}, {"good.test": headers(a=1)},
    {"*": headers(a="b")}, {"*.test": headers(a="b")}, {"a b": headers(a="b")}, {"1.1.1.1": headers(a="b")},
    {"good.test": headers(Host="x")}, {"good.test": headers(**{"a b": "c"})}, {"good.test": headers(a="b\r\nc: d")},
    {"good.test": headers(a="${e2b.secrets.x")}, {"good.test": headers(a="${e2b.secrets.e2b-key}${e2b.secrets.e2b-key}")},
    {"good.test": headers(a="${e2b.secrets.nonesuch}")}, {"good.test": headers(a="${e2b.secrets.}")},
    {"good.test": headers(a="${e2b.identity.tokens.t}")}, {f"h{i}.test": headers(a="b") for i in range(65)},
    {"good.test": headers(**{f"h{i}": "b" for i in range(65)})}, {"good.test": headers(a="x" * 70000)},
])
def test_what_are_no_headers_changes_nothing(e2b, daemon, made, secret, rules):
    path = f"/sandboxes/{made['sandboxID']}/network"
    assert e2b("PUT", path, {"rules": {"kept.test": headers(a="b")}}).status == 204
    answer = e2b("PUT", path, {"rules": rules} if rules else {"rules": "x"})
    assert (answer.status, answer.json["code"]) == (400, 400), answer.json
    assert [b["host"] for b in daemon.api.get(made["sandboxID"])["bindings"]] == ["kept.test"]


def test_who_asks_for_no_network_gets_the_templates(e2b, another, daemon):
    daemon.api.ok("POST", "/v1/templates", {"name": "shut-in", "image": "base", "network": {"rules": ["allow good.test"]}})
    for asked in ({}, {"allow_internet_access": True}, {"network": {"allowPublicTraffic": True}}):
        made = another(templateID="shut-in", **asked)
        assert daemon.api.get(made["sandboxID"])["network"] == {"rules": ["allow good.test"]}
    made = another(templateID="shut-in", network={"denyOut": ["8.8.8.8"]})
    assert daemon.api.get(made["sandboxID"])["network"] == {"rules": ["deny 8.8.8.8", "allow *"]}


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
    # The same hour for both: that up to now is parted elsewhere a moment later, and its largest part is another.
    span = f"start={int(time.time()) - 3600}&end={int(time.time())}"
    curve = e2b("GET", f"/teams/{team['teamID']}/metrics?{span}").json
    assert curve[-1]["concurrentSandboxes"] >= 1 and any(m["sandboxStartRate"] > 0 for m in curve)
    most = e2b("GET", f"/teams/{team['teamID']}/metrics/max?metric=concurrent_sandboxes&{span}").json
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
    lines = [json.loads(m["line"]) for m in old["logs"]]  # as `e2b sandbox logs` does
    assert [(m["level"], m["logger"], m["message"]) for m in lines] == told and len(old["logEntries"]) == len(lines)
    for query in ("direction=up", "level=loud", "limit=1001", "cursor=x"):
        assert e2b("GET", f"/v2/sandboxes/{who}/logs?{query}").status == 400, query
    e2b("DELETE", f"/sandboxes/{who}")
    assert "sandbox.deleted" in e2b("GET", f"/v2/sandboxes/{who}/logs").json["logs"][-1]["message"]
    assert e2b("GET", "/v2/sandboxes/nosuchsandboxatall00/logs").status == 404


def test_lists_by_template_and_time(e2b, another):
    first = another(metadata={"k 1": "v&2"})
    time.sleep(0.01)  # one is made in less than the millisecond that times are told in
    second = another(metadata={"k 1": "v&2"})
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
