"""Templates: what a sandbox starts with, when it is ready, and ready ones made ahead."""
import concurrent.futures
import random

import pytest

from harness import until

SLOW = "sleep 0.3; echo ready > /tmp/ready; echo started; exec sleep 1000"
IS_READY = "cat /tmp/ready"
SERVER = "while true; do printf 'HTTP/1.0 %s\\r\\nContent-Length: 2\\r\\n\\r\\nok' | nc -l -p 8080 127.0.0.1; done"


@pytest.fixture
def template(api):
    made = []

    def make_one(name, **body):
        body.setdefault("image", "tiny")
        made.append(name)
        return api.ok("POST", "/v1/templates", {"name": name, **body})
    yield make_one
    for name in made:
        api.call("DELETE", f"/v1/templates/{name}")


def ready(api, name):
    return api.ok("GET", f"/v1/templates/{name}")["ready_sandboxes"]


def test_a_template_comes_and_goes(api, template):
    made = template("web", start_command="sleep 1000", ready={"http": {"port": 80}}, env={"A": "1"},
                    ports=[80, 443], cpus=0.5, memory_mb=128, ready_timeout_s=5, public=False)
    assert made["start_command"] == ["/bin/sh", "-c", "sleep 1000"]
    assert made["ready"] == {"http": {"port": 80, "path": "/", "status": 200}}
    assert (made["cpus"], made["memory_mb"], made["ports"], made["warm"]) == (0.5, 128, [80, 443], 0)
    assert (made["ready_timeout_s"], made["team"], made["ready_sandboxes"]) == (5, "default", 0)
    again = template("web", start_command=["sleep", "5"], ready={"command": ["true"]})
    assert again["start_command"] == ["sleep", "5"] and again["created_at"] == made["created_at"]
    assert again["cpus"] == 1  # replaced, not merged
    assert [t["name"] for t in api.ok("GET", "/v1/templates")["templates"]].count("web") == 1
    assert api.ok("GET", "/v1/templates/web")["ready"] == {"command": ["true"]}
    api.ok("DELETE", "/v1/templates/web")
    api.refused(404, "template_not_found", "GET", "/v1/templates/web")
    api.refused(404, "template_not_found", "DELETE", "/v1/templates/web")
    api.refused(404, "template_not_found", "POST", "/v1/sandboxes", {"template": "web"})


@pytest.mark.parametrize("body", [
    {}, {"name": "a b"}, {"name": "x" * 64}, {"name": "x", "warm": 65}, {"name": "x", "warm": -1},
    {"name": "x", "start_command": []}, {"name": "x", "start_command": ""}, {"name": "x", "start_command": 3},
    {"name": "x", "start_command": [""]}, {"name": "x", "ready": {}}, {"name": "x", "ready": {"port": 0}},
    {"name": "x", "ready": {"port": 80, "command": "true"}}, {"name": "x", "ready": {"http": {}}},
    {"name": "x", "ready": {"http": {"port": 80, "path": "no"}}}, {"name": "x", "ready": {"fish": 1}},
    {"name": "x", "ready": {"http": {"port": 80, "path": "/a b\r\nX: y"}}}, {"name": "x", "ports": [0]},
    {"name": "x", "ready": {"http": {"port": 80, "status": 1000}}}, {"name": "x", "ready_timeout_s": 0},
    {"name": "x", "memory_mb": 1}, {"name": "x", "env": {"A=": "1"}}, {"name": "x", "workdir": "here"},
    {"name": "x", "ready_timeout_s": 1e9}, {"name": "x", "cpus": 1e5}, {"name": "x", "ports": 80}])
def test_odd_templates_are_refused(api, body):
    body.setdefault("image", "tiny")
    assert api.call("POST", "/v1/templates", body).status == 400
    api.refused(404, "image_not_found", "POST", "/v1/templates", {"name": "x", "image": "nosuch"})


def test_its_values_are_defaults(api, template, make):
    template("small", cpus=0.5, memory_mb=64, env={"A": "1", "B": "2"}, user="user", workdir="/tmp")
    box = make(template="small", memory_mb=96, env={"B": "3"}, name="mine", metadata={"m": "1"})
    assert (box["template"], box["image"], box["cpus"], box["memory_mb"]) == ("small", "tiny", 0.5, 96)
    assert (box["user"], box["workdir"], box["env"]) == ("user", "/tmp", {"A": "1", "B": "3"})
    assert api.out(box["id"], "echo $A $B $(pwd) $(id -un)") == "1 3 /tmp user\n"
    api.refused(400, "invalid_field", "PATCH", f"/v1/sandboxes/{box['id']}", {"template": "other"})
    assert api.create(image="tiny")["template"] is None


@pytest.mark.parametrize("warm", [0, 1])
def test_creation_answers_once_it_is_ready(api, template, make, warm):
    template("slow", start_command=SLOW, ready={"command": IS_READY}, warm=warm)
    until(lambda: ready(api, "slow") == warm, "what is made ahead")
    box = make(template="slow")["id"]
    assert api.out(box, IS_READY) == "ready\n"
    first = api.process(box, 1)
    assert (first["label"], first["state"]) == ("start", "running")
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    api.ok("POST", f"/v1/sandboxes/{box}/start")
    assert api.process(box, 1)["label"] == "start"


@pytest.mark.parametrize("probe, said", [({"port": 8080}, "200 OK"), ({"http": {"port": 8080}}, "200 OK"),
                                         ({"http": {"port": 8080, "path": "/x", "status": 404}}, "404 No")])
def test_ports_and_http_are_probed_inside(api, template, make, probe, said):
    up = "sleep 0.3; touch /tmp/up; "
    template("server", start_command=up + SERVER.replace("%s", said), ready=probe)
    box = make(template="server")["id"]
    api.out(box, "test -e /tmp/up")
    assert api.process(box, 1)["state"] == "running"


def test_what_does_not_get_ready_is_deleted_and_says_why(api, template):
    template("dead", start_command="echo oh no; exit 3", ready={"port": 80})
    error = api.refused(424, "template_not_ready", "POST", "/v1/sandboxes", {"template": "dead", "name": "d"})
    assert "oh no" in error["message"] and "3" in error["message"]
    template("never", start_command="echo still here; sleep 1000", ready={"command": "false"},
             ready_timeout_s=1)
    error = api.refused(424, "template_not_ready", "POST", "/v1/sandboxes", {"template": "never", "name": "n"})
    assert "still here" in error["message"]
    template("wrong", start_command=SERVER.replace("%s", "500 No"), ready={"http": {"port": 8080}},
             ready_timeout_s=1)
    api.refused(424, "template_not_ready", "POST", "/v1/sandboxes", {"template": "wrong"})
    template("nothing", start_command=["/no/such/program"])
    api.refused(400, "program_not_found", "POST", "/v1/sandboxes", {"template": "nothing"})
    assert not [s for s in api.list()["sandboxes"] if s["template"] in ("dead", "never", "wrong", "nothing")]


def test_ready_ones_are_hidden_until_handed_out(api, daemon, template, make):
    before = {s["id"] for s in api.list(limit=1000)["sandboxes"]}
    in_use = api.ok("GET", "/v1/teams/default")["in_use"]["sandboxes"]
    template("warm", start_command=SLOW, ready={"command": IS_READY}, warm=3)
    until(lambda: ready(api, "warm") == 3, "three")
    assert {s["id"] for s in api.list(limit=1000)["sandboxes"]} == before
    assert api.ok("GET", "/v1/teams/default")["in_use"]["sandboxes"] == in_use
    there = cells(daemon)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        made = list(pool.map(lambda i: make(template="warm", name=f"w{i}", metadata={"i": str(i)}), range(3)))
    assert len({m["id"] for m in made}) == 3 and {m["name"] for m in made} == {"w0", "w1", "w2"}
    assert {m["id"] for m in made} <= there  # they were there before anyone asked
    for m in made:
        assert api.out(m["id"], "cat /tmp/ready") == "ready\n"
    until(lambda: ready(api, "warm") == 3, "three again")
    other = make(template="warm", memory_mb=640)  # none of those would do
    assert other["memory_mb"] == 640 and api.out(other["id"], "cat /tmp/ready") == "ready\n"
    assert ready(api, "warm") == 3
    # Another version has its own, and a template that goes takes its own along.
    template("warm", start_command="echo two > /tmp/ready; exec sleep 1000", ready={"command": IS_READY}, warm=1)
    until(lambda: ready(api, "warm") == 1, "one of the new version")
    assert api.out(make(template="warm")["id"], "cat /tmp/ready") == "two\n"


def test_a_new_image_takes_the_place_of_what_was_made_of_the_old(fresh, tiny_tar):
    api = fresh.api
    api.import_image("app", tiny_tar)
    api.ok("POST", "/v1/templates", {"name": "app", "image": "app", "warm": 2})
    until(lambda: ready(api, "app") == 2, "two")
    api.refused(409, "image_in_use", "DELETE", "/v1/images/app")
    box = api.create(template="app")["id"]
    api.out(box, "echo two > /etc/version")
    api.ok("POST", f"/v1/sandboxes/{box}/commit", {"name": "app"})
    until(lambda: ready(api, "app") == 2, "two of the new image")
    new = api.create(template="app")["id"]
    assert api.out(new, "cat /etc/version") == "two\n"
    for who in (box, new):
        api.delete(who)
    api.ok("DELETE", "/v1/templates/app")
    api.ok("DELETE", "/v1/images/app")


def cells(daemon):
    path = daemon.run / "cells"
    return {p.name for p in path.iterdir()} if path.exists() else set()


def test_a_crash_leaves_none_behind(fresh):
    api = fresh.api
    api.ok("POST", "/v1/templates", {"name": "warm", "image": "tiny", "warm": 2, "start_command": SLOW,
                                     "ready": {"command": IS_READY}})
    until(lambda: ready(api, "warm") == 2, "two")
    kept = api.create(template="warm")["id"]
    for seed in range(2):
        before = cells(fresh)
        fresh.kill_everything(random.Random(seed).shuffle)
        fresh.start()
        until(lambda: ready(api, "warm") == 2, "two anew")
        assert not (before - {kept}) & cells(fresh)
        assert api.get(kept)["state"] == "running" and api.out(kept, IS_READY) == "ready\n"
    api.ok("DELETE", "/v1/templates/warm")
    blank = 4
    until(lambda: len(cells(fresh)) <= 1 + blank, "its ready ones gone")


def test_teams_have_their_own_and_share_public_ones(api, template):
    for name in ("red", "blue"):
        api.ok("POST", "/v1/teams", {"name": name})
    red, blue = (api.with_key(api.ok("POST", "/v1/keys", {"name": "k", "team": t})["key"])
                 for t in ("red", "blue"))
    try:
        red.ok("POST", "/v1/templates", {"name": "mine", "image": "tiny", "memory_mb": 64})
        blue.refused(404, "template_not_found", "GET", "/v1/templates/mine")
        blue.refused(404, "template_not_found", "DELETE", "/v1/templates/mine")
        blue.refused(404, "template_not_found", "POST", "/v1/sandboxes", {"template": "mine"})
        assert "mine" not in [t["name"] for t in blue.ok("GET", "/v1/templates")["templates"]]
        red.ok("POST", "/v1/templates", {"name": "mine", "image": "tiny", "memory_mb": 64, "public": True})
        assert blue.ok("GET", "/v1/templates/red%2Fmine")["team"] == "red"
        blue.refused(404, "template_not_found", "GET", "/v1/templates/mine")
        blue.refused(404, "template_not_found", "DELETE", "/v1/templates/red%2Fmine")
        box = blue.create(template="red/mine")
        assert box["memory_mb"] == 64
        blue.delete(box["id"])
        blue.ok("POST", "/v1/templates", {"name": "mine", "image": "tiny", "memory_mb": 32})
        assert blue.ok("GET", "/v1/templates/mine")["memory_mb"] == 32  # an own one comes first
        assert red.ok("GET", "/v1/templates/mine")["memory_mb"] == 64
    finally:
        for name in ("red", "blue"):
            api.ok("DELETE", f"/v1/teams/{name}")
    assert "mine" not in str(api.ok("GET", "/v1/templates"))


def test_the_command_line_makes_and_uses_them(daemon):
    cli = daemon.cli
    done = cli("template", "create", "--image", "tiny", "--memory", "64m", "-e", "A=1", "--ready", "cat /tmp/ready",
               "--ready-timeout", "30s", "-p", "80", "shop", "--", "/bin/sh", "-c", SLOW)
    assert done.stdout == "shop\n", done
    try:
        shown = daemon.api.ok("GET", "/v1/templates/shop")
        assert shown["start_command"] == ["/bin/sh", "-c", SLOW] and shown["memory_mb"] == 64
        assert shown["ready"] == {"command": ["/bin/sh", "-c", "cat /tmp/ready"]} and shown["ports"] == [80]
        assert "shop" in cli("template", "ls").stdout and '"shop"' in cli("template", "get", "shop").stdout
        ran = cli("run", "--template", "shop", "--", "sh", "-c", "cat /tmp/ready; echo $A")
        assert ran.stdout == "ready\n1\n", ran
        assert cli("template", "create", "--ready-http", "x", "bad").returncode == 1
        assert cli("template", "create", "--ready-http", "80", "--ready-port", "80", "bad").returncode == 1
    finally:
        assert cli("template", "rm", "shop").stdout == "shop\n"
    assert cli("create", "--template", "shop").returncode == 1
