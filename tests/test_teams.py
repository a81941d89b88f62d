"""Teams that know nothing of each other, their keys' roles, and how much they may use."""
import concurrent.futures
import subprocess

import pytest

from harness import BUILD, until


@pytest.fixture
def team(api):
    """Make teams, each with a member's key; gone after the test."""
    made = []

    def make_one(name, **quotas):
        api.ok("POST", "/v1/teams", {"name": name, "quotas": quotas})
        made.append(name)
        key = api.ok("POST", "/v1/keys", {"name": f"{name}-key", "team": name})
        assert (key["team"], key["role"]) == (name, "member")
        return api.with_key(key["key"])
    yield make_one
    for name in made:
        as_team = {"X-Warren-Team": name}
        for s in api.call("GET", "/v1/sandboxes", headers=as_team).json.get("sandboxes", []):
            api.call("DELETE", f"/v1/sandboxes/{s['id']}", headers=as_team)
        api.call("DELETE", f"/v1/teams/{name}")


def test_checkpoints_do_not_outlive_their_team(api, team):
    """Who is called the same later would find them."""
    first = team("green")
    box = first.create(image="tiny")["id"]
    mark = first.ok("POST", f"/v1/sandboxes/{box}/checkpoints", {})["id"]
    first.delete(box)
    error = api.refused(409, "team_not_empty", "DELETE", "/v1/teams/green")
    assert "checkpoints" in error["message"]
    first.ok("DELETE", f"/v1/checkpoints/{mark}")
    api.ok("DELETE", "/v1/teams/green")


def test_a_team_comes_and_goes(api):
    made = api.ok("POST", "/v1/teams", {"name": "blue", "quotas": {"sandboxes": 2, "cpus": 1.5}})
    assert made["name"] == "blue" and made["created_at"]
    assert made["quotas"] == {"sandboxes": 2, "cpus": 1.5, "memory_mb": None, "disk_mb": None}
    assert made["in_use"] == {"sandboxes": 0, "cpus": 0, "memory_mb": 0, "disk_mb": 0}
    api.refused(409, "name_taken", "POST", "/v1/teams", {"name": "blue"})
    assert "blue" in [t["name"] for t in api.ok("GET", "/v1/teams")["teams"]]
    changed = api.ok("PATCH", "/v1/teams/blue", {"quotas": {"cpus": None, "disk_mb": 100}})
    assert changed["quotas"] == {"sandboxes": 2, "cpus": None, "memory_mb": None, "disk_mb": 100}
    api.ok("DELETE", "/v1/teams/blue")
    api.refused(404, "team_not_found", "GET", "/v1/teams/blue")
    api.refused(404, "team_not_found", "DELETE", "/v1/teams/blue")
    api.refused(403, "forbidden", "DELETE", "/v1/teams/default")


@pytest.mark.parametrize("body", [
    {}, {"name": ""}, {"name": "a b"}, {"name": "../x"}, {"name": "x" * 64}, {"name": "x", "quota": {}},
    {"name": "x", "quotas": {"sandboxes": -1}}, {"name": "x", "quotas": {"sandboxes": 1.5}},
    {"name": "x", "quotas": {"sandboxes": "3"}}, {"name": "x", "quotas": {"fish": 3}},
    {"name": "x", "quotas": [1]}, {"name": "x", "quotas": {"cpus": 1e300}}])
def test_odd_teams_are_refused(api, body):
    assert api.call("POST", "/v1/teams", body).status == 400


def test_a_member_looks_after_no_team(api, team):
    red = team("red", sandboxes=5)
    for method, path, body in (("POST", "/v1/teams", {"name": "mine"}), ("DELETE", "/v1/teams/red", None),
                               ("PATCH", "/v1/teams/red", {"quotas": {"sandboxes": 9}}),
                               ("PATCH", "/v1/teams/default", {"quotas": {}})):
        red.refused(403, "forbidden", method, path, body)
    assert [t["name"] for t in red.ok("GET", "/v1/teams")["teams"]] == ["red"]
    assert red.ok("GET", "/v1/teams/red")["quotas"]["sandboxes"] == 5
    red.refused(404, "team_not_found", "GET", "/v1/teams/default")
    red.refused(404, "team_not_found", "GET", "/v1/teams/nosuch")


def test_members_issue_and_revoke_keys_of_their_own_team_only(api, team):
    red, blue = team("red"), team("blue")
    mine = red.ok("POST", "/v1/keys", {"name": "second"})
    assert (mine["team"], mine["role"]) == ("red", "member")
    for body in ({"name": "x", "team": "blue"}, {"name": "x", "role": "admin"},
                 {"name": "x", "team": "default"}, {"name": "x", "team": "nosuch"}):
        red.refused(403, "forbidden", "POST", "/v1/keys", body)
    theirs = blue.ok("GET", "/v1/keys")["keys"]
    assert {k["team"] for k in theirs} == {"blue"}
    red.refused(404, "key_not_found", "DELETE", f"/v1/keys/{theirs[0]['id']}")
    operator = api.ok("POST", "/v1/keys", {"name": "boss", "team": "red", "role": "admin"})
    red.refused(403, "forbidden", "DELETE", f"/v1/keys/{operator['id']}")
    red.ok("DELETE", f"/v1/keys/{mine['id']}")
    assert api.with_key(mine["key"]).call("GET", "/v1/sandboxes").status == 401
    assert {"red", "blue"} <= {k["team"] for k in api.ok("GET", "/v1/keys")["keys"]}
    assert {k["team"] for k in
            api.ok("GET", "/v1/keys", headers={"X-Warren-Team": "blue"})["keys"]} == {"blue"}


def test_the_header_is_the_operators(api, team, daemon):
    red, blue = team("red"), team("blue")
    box = blue.create(image="tiny", name="box")
    for_blue = {"X-Warren-Team": "blue"}
    for boss in (api, daemon.admin):
        assert boss.ok("GET", "/v1/sandboxes/box", headers=for_blue)["id"] == box["id"]
        assert boss.call("GET", f"/v1/sandboxes/{box['id']}").status == 404
        boss.refused(404, "team_not_found", "GET", "/v1/sandboxes", headers={"X-Warren-Team": "nosuch"})
        boss.refused(404, "team_not_found", "GET", "/v1/sandboxes", headers={"X-Warren-Team": "a/b"})
    for other in ("blue", "default", "nosuch"):
        red.refused(403, "forbidden", "GET", "/v1/sandboxes", headers={"X-Warren-Team": other})
    assert red.ok("GET", "/v1/sandboxes", headers={"X-Warren-Team": "red"})["sandboxes"] == []


def test_teams_know_nothing_of_each_other(api, team):
    red, blue = team("red"), team("blue")
    box = red.create(image="tiny", name="box", metadata={"a": "b"})["id"]
    process = red.start(box, "sleep 1000")["process"]
    own = red.ok("GET", "/v1/events?limit=1000")["events"]
    assert box in [e["sandbox"] for e in own]
    strange = "a" * 20
    base = f"/v1/sandboxes/{box}"
    calls = [
        ("GET", base, None), ("PATCH", base, {"name": "mine"}), ("DELETE", base, None),
        ("POST", f"{base}/stop", None), ("POST", f"{base}/start", None), ("GET", f"{base}/usage", None),
        ("POST", f"{base}/exec", {"shell": "id"}), ("POST", f"{base}/processes", {"shell": "id"}),
        ("GET", f"{base}/processes", None), ("GET", f"{base}/processes/{process}", None),
        ("DELETE", f"{base}/processes/{process}", None), ("GET", f"{base}/processes/{process}/output", None),
        ("GET", f"{base}/processes/{process}/wait", None), ("POST", f"{base}/processes/{process}/stdin", b"x"),
        ("POST", f"{base}/processes/{process}/signal", {"signal": "TERM"}),
        ("POST", f"{base}/processes/{process}/resize", {"rows": 1, "cols": 1}),
    ]
    for method, path, body in calls:
        for path in (path, path.replace(box, "box")):
            got = blue.call(method, path, body)
            unknown = blue.call(method, path.replace(box, strange).replace("/box", "/" + strange), body)
            assert (got.status, got.code) == (404, "sandbox_not_found"), (method, path, got)
            assert (unknown.status, unknown.code) == (404, "sandbox_not_found"), (method, path)
            assert red.get("box")["state"] == "running"
    assert blue.list()["sandboxes"] == [] and blue.list(metadata__a="b")["sandboxes"] == []
    assert blue.create(image="tiny", name="box")["id"] != box  # names are a team's own
    for query in ("", f"&sandbox={box}"):
        assert box not in str(blue.ok("GET", f"/v1/events?limit=1000{query}"))
    assert box not in str(api.ok("GET", "/v1/events?limit=1000"))
    red.delete(box)
    # Its end is as unknown to others as its life.
    blue.refused(404, "sandbox_not_found", "GET", base)
    red.refused(404, "sandbox_gone", "GET", base)
    metrics = api.with_key(None).call("GET", "/metrics").body.decode()
    assert box not in metrics and "\"red\"" not in metrics


def test_a_team_goes_with_its_keys_once_it_is_empty(api, team):
    red = team("red")
    box = red.create(image="tiny")["id"]
    assert "sandbox" in api.refused(409, "team_not_empty", "DELETE", "/v1/teams/red")["message"]
    red.delete(box)
    api.ok("DELETE", "/v1/teams/red")
    assert red.call("GET", "/v1/sandboxes").status == 401
    api.ok("POST", "/v1/teams", {"name": "red"})
    assert red.call("GET", "/v1/sandboxes").status == 401  # a new team of that name is not theirs


def test_quotas_say_what_is_missing(api, team):
    red = team("red", sandboxes=2, cpus=1.5, memory_mb=1024, disk_mb=2048)
    a = red.create(image="tiny", cpus=0.5, memory_mb=512, disk_mb=1024)["id"]
    said = red.refused(403, "quota_exceeded", "POST", "/v1/sandboxes", {"image": "tiny", "cpus": 1.1,
                                                                       "disk_mb": 16})["message"]
    assert "cpus" in said and "1.5" in said and "0.5" in said and "1.1" in said
    said = red.refused(403, "quota_exceeded", "POST", "/v1/sandboxes",
                       {"image": "tiny", "memory_mb": 513, "disk_mb": 16})["message"]
    assert "memory_mb" in said
    said = red.refused(403, "quota_exceeded", "POST", "/v1/sandboxes", {"image": "tiny", "disk_mb": 1025})
    assert "disk_mb" in said["message"]
    red.ok("POST", f"/v1/sandboxes/{a}/stop")
    b = red.create(image="tiny", cpus=1, memory_mb=1024, disk_mb=1024)["id"]
    red.refused(403, "quota_exceeded", "POST", f"/v1/sandboxes/{a}/start")
    assert red.get(a)["state"] == "stopped"
    assert "sandboxes" in red.refused(403, "quota_exceeded", "POST", "/v1/sandboxes",
                                      {"image": "tiny", "disk_mb": 16})["message"]
    red.refused(403, "quota_exceeded", "PATCH", f"/v1/sandboxes/{b}", {"memory_mb": 1025})
    assert red.get(b)["memory_mb"] == 1024
    red.ok("PATCH", f"/v1/sandboxes/{b}", {"memory_mb": 512})
    red.ok("POST", f"/v1/sandboxes/{a}/start")
    used = api.ok("GET", "/v1/teams/red")["in_use"]
    assert used == {"sandboxes": 2, "cpus": 1.5, "memory_mb": 1024, "disk_mb": 2048}
    assert api.create(image="tiny")["id"]  # other teams have room


def test_concurrent_creates_share_a_quota(api, team):
    red = team("red", sandboxes=5)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: red.call("POST", "/v1/sandboxes", {"image": "tiny"}), range(24)))
    assert sorted(r.status for r in replies) == [201] * 5 + [403] * 19
    assert len(red.list()["sandboxes"]) == 5


def test_teams_and_roles_survive_a_crash(fresh):
    fresh.api.ok("POST", "/v1/teams", {"name": "red", "quotas": {"sandboxes": 1}})
    key = fresh.api.ok("POST", "/v1/keys", {"name": "k", "team": "red"})["key"]
    red = fresh.api.with_key(key)
    box = red.create(image="tiny")["id"]
    fresh.restart()
    assert red.get(box)["state"] == "running"
    red.refused(403, "quota_exceeded", "POST", "/v1/sandboxes", {"image": "tiny"})
    red.refused(403, "forbidden", "POST", "/v1/teams", {"name": "x"})
    assert fresh.api.ok("GET", "/v1/teams/red")["in_use"]["sandboxes"] == 1
    red.delete(box)
    until(lambda: fresh.api.ok("GET", "/v1/teams/red")["in_use"]["sandboxes"] == 0)


def test_the_command_line_looks_after_teams(daemon, team):
    cli = daemon.cli
    assert cli("team", "create", "--sandboxes", "2", "--memory", "1g", "--cpus", "1.5", "green").stdout == "green\n"
    try:
        row = next(line for line in cli("team", "ls").stdout.splitlines() if line.startswith("green"))
        assert "0 of 2" in row and "0 of 1.5" in row and "1 GiB" in row
        assert cli("team", "update", "--no", "cpus", "--disk", "50g", "green").returncode == 0
        quotas = daemon.api.ok("GET", "/v1/teams/green")["quotas"]
        assert quotas == {"sandboxes": 2, "cpus": None, "memory_mb": 1024, "disk_mb": 51200}
        key = cli("key", "create", "--for-team", "green", "ci").stdout.strip()
        mine = {"WARREN_API_KEY": key}
        box = cli("create", "--image", "tiny", env=mine).stdout.strip()
        assert cli("ls", "-q", env=mine).stdout.strip() == box
        assert cli("--team", "green", "ls", "-q").stdout.strip() == box
        assert cli("ls", "-q", env={"WARREN_TEAM": "green"}).stdout.strip() == box
        assert box not in cli("ls", "-q").stdout
        refused = cli("create", "--image", "tiny", "--memory", "2g", env=mine)
        assert refused.returncode == 1 and "memory_mb" in refused.stderr
        assert cli("team", "rm", "green").returncode == 1
        assert "team" in cli("team", "create", "x", env=mine).stderr
        cli("rm", "-f", box, env=mine)
        report = cli("usage", env=mine)
        assert box in report.stdout and "total" in report.stdout, report
        assert cli("usage", "--since", "2h", "--step", "hour", "--json", box, env=mine).returncode == 0
        assert cli("usage", "--since", "2h", "--from", "x", env=mine).returncode == 2
    finally:
        assert cli("team", "rm", "green").returncode == 0


# What a request needs to get past the check of its own shape: then only the team can stop it.
QUERIES = ["", "?path=/etc/passwd", "?path=/etc&name=*", "?path=/etc&format=tar"]
BODIES = {"exec": {"shell": "true"}, "processes": {"shell": "true"}, "signal": {"signal": 9},
          "resize": {"rows": 1, "cols": 1}, "move": {"from": "/a", "to": "/b"}, "copy": {"from": "/a", "to": "/b"},
          "mkdir": {"path": "/x"}, "chmod": {"path": "/x", "mode": "0644"}, "chown": {"path": "/x", "owner": "root"},
          "symlink": {"path": "/x", "target": "/y"}, "truncate": {"path": "/x", "size": 0},
          "xattrs": {"path": "/x", "name": "user.x", "value": "y"}, "search": {"path": "/etc", "text": "root"},
          "replace": {"path": "/tmp", "text": "a", "replacement": "b"}, "read": {"paths": ["/etc/passwd"]},
          "watches": {"path": "/tmp"}, "restore": {"checkpoint": "x"}, "commit": {"name": "stolen"}, "leases": {"seconds": 5},
          "{id}": {"metadata": {"a": "b"}}}


def sandbox_routes():
    out = subprocess.run([str(BUILD / "warrend"), "--routes"], capture_output=True, text=True).stdout
    return [tuple(line.split()) for line in out.splitlines() if "/v1/sandboxes/{id}" in line]


def test_no_route_of_a_sandbox_opens_for_another_team(api, team):
    ours, theirs = team("ours"), team("theirs")
    who = ours.ok("POST", "/v1/sandboxes", {"image": "tiny", "name": "private"})["id"]
    routes = sandbox_routes()
    assert len(routes) > 30
    for method, pattern in routes:
        last = pattern.split("/")[-1]
        path = pattern.replace("{id}", who).replace("{n}", "1")
        body = BODIES.get(last) if method in ("POST", "PUT", "PATCH") else None
        kind = {"Content-Type": "application/x-tar"} if last == "write" else None
        replies = [theirs.call(method, path + query, body, headers=kind) for query in QUERIES]
        assert 404 in [r.status for r in replies], f"{method} {pattern}: {replies}"
        assert all(r.status in (400, 404) for r in replies), f"{method} {pattern}: {replies}"
    assert ours.ok("GET", f"/v1/sandboxes/{who}")["state"] == "running"
