"""The ready state of a template, kept with its memory: what a copy has of its own, when one boots, and what is left."""
import concurrent.futures
import http.client
import json
import os
import random
import uuid

import pytest

import e2b_kit
import harness
from harness import until

# Ready once it has a number that each boot draws anew; it also says which of its variables are whose.
START = "cat /proc/sys/kernel/random/uuid > /tmp/new; env > /tmp/env; mv /tmp/new /tmp/born; exec sleep 1000"
READY = {"command": "cat /tmp/born"}
# It holds what CRIU cannot write down: a watch of a file where no user works.
WATCHER = ("import ctypes, time\nl = ctypes.CDLL(None)\nfd = l.inotify_init()\n"
           "assert l.inotify_add_watch(fd, b'/usr/share', 256) > 0\nopen('/tmp/born', 'w').write(str(time.time()))\ntime.sleep(1000)")


@pytest.fixture(scope="module", autouse=True)
def memory(api):
    """Skips all where this host keeps no memory, with its reason."""
    box = api.create(image="tiny")["id"]
    reply = api.call("POST", f"/v1/sandboxes/{box}/checkpoints", {"memory": True})
    if reply.status == 501:
        api.delete(box)
        pytest.skip(reply.json["error"]["message"])
    api.ok("DELETE", f"/v1/checkpoints/{reply.json['id']}")
    api.delete(box)


@pytest.fixture
def template(api):
    made = []

    def make_one(name, by=api, **body):
        body = {"image": "tiny", "start_command": START, "ready": READY, **body}
        made.append((by, name))
        return by.ok("POST", "/v1/templates", {"name": name, **body})
    yield make_one
    for by, name in made:
        by.call("DELETE", f"/v1/templates/{name}")


@pytest.fixture
def teams(api):
    """Two teams' ways in."""
    found = {}
    for name in ("red", "blue"):
        api.ok("POST", "/v1/teams", {"name": name})
        found[name] = api.with_key(api.ok("POST", "/v1/keys", {"name": "k", "team": name})["key"])
    yield found
    for name in found:
        api.ok("DELETE", f"/v1/teams/{name}")


def kept(api, name):
    return api.ok("GET", f"/v1/templates/{name}")["memory_kept"]


def boot_first(api, name, create):
    """The first sandbox, which boots, and is followed by the memory. What it drew."""
    first = create(template=name)["id"]
    drawn = born(api, first)
    until(lambda: kept(api, name), "its memory")
    return drawn


def born(api, who):
    return api.out(who, "cat /tmp/born").strip()


def disk_mb(api, team):
    return api.ok("GET", f"/v1/teams/{team}")["in_use"]["disk_mb"]


def log_of(daemon):
    return (daemon.dir / "log").read_text(errors="replace")


def listed(api):
    return {c["id"] for c in api.ok("GET", "/v1/checkpoints?limit=1000")["checkpoints"]}


def test_creates_are_copies_with_what_is_their_own(api, template, make):
    before = listed(api)
    template("ready", env={"WHOSE": "template"})
    first = boot_first(api, "ready", lambda **more: make(env={"FIRST": "secret"}, **more))
    one = make(template="ready", name="one", metadata={"m": "1"}, env={"WHOSE": "mine"}, network="open")
    two = make(template="ready", cpus=2, memory_mb=1024, pids=2000)
    seen = [born(api, s["id"]) for s in (one, two)]
    assert seen[0] == seen[1] != first
    assert (one["name"], one["metadata"], one["network"]) == ("one", {"m": "1"}, "open")
    assert (two["cpus"], two["memory_mb"], two["pids"]) == (2, 1024, 2000)
    assert api.out(one["id"], "echo $WHOSE").strip() == "mine" and api.out(two["id"], "echo $WHOSE").strip() == "template"
    for s in (one, two):
        assert api.process(s["id"], 1)["label"] == "start" and api.process(s["id"], 1)["state"] == "running"
        assert api.out(s["id"], "hostname").strip() == s["id"]
        assert "FIRST" not in api.out(s["id"], "cat /tmp/env")  # nor in anything else of the first
        assert "secret" not in api.out(s["id"], "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -v mine || true")
    boots = {api.out(s["id"], "cat /proc/sys/kernel/random/boot_id") for s in (one, two)}
    assert len(boots) == 2
    assert int(api.out(two["id"], "cat /sys/fs/cgroup/memory.max")) == 1024 << 20
    # What was brought back boots like any other when it is started again.
    api.ok("POST", f"/v1/sandboxes/{one['id']}/stop")
    api.ok("POST", f"/v1/sandboxes/{one['id']}/start")
    until(lambda: born(api, one["id"]) != seen[0], "the start command to draw its number")  # the file of before was there
    assert listed(api) == before  # what the template keeps is in no list


def test_one_that_needs_something_else_boots(api, template, make):
    template("ready", memory_mb=256)
    boot_first(api, "ready", make)
    copy = born(api, make(template="ready")["id"])
    for other in ({"memory_mb": 128}, {"user": "user"}, {"nofile": 2048}, {"disk_mb": 256}):
        s = make(template="ready", **other)
        assert born(api, s["id"]) != copy, other
    assert born(api, make(template="ready")["id"]) == copy


def test_another_version_and_another_image_have_their_own(fresh, tiny_tar):
    api = fresh.api
    api.import_image("app", tiny_tar)
    body = {"name": "app", "image": "app", "start_command": START, "ready": READY}
    api.ok("POST", "/v1/templates", body)
    made = [api.create(template="app")["id"]]
    until(lambda: kept(api, "app"), "its memory")
    old = fresh.stored("memory")
    made.append(api.create(template="app")["id"])
    copy = born(api, made[-1])
    api.ok("POST", "/v1/templates", {**body, "env": {"A": "2"}})
    assert not kept(api, "app")
    made.append(api.create(template="app")["id"])
    assert born(api, made[-1]) != copy and "A=2" in api.out(made[-1], "cat /tmp/env")
    until(lambda: kept(api, "app"), "that of the new version")
    until(lambda: not old & fresh.stored("memory"), "the old one gone")
    made.append(api.create(template="app")["id"])
    assert "A=2" in api.out(made[-1], "cat /tmp/env")
    older, copy = fresh.stored("memory"), born(api, made[-1])
    api.out(made[0], "echo two > /etc/version; rm -f /tmp/born")
    api.ok("POST", f"/v1/sandboxes/{made[0]}/commit", {"name": "app"})
    made.append(api.create(template="app")["id"])
    assert api.out(made[-1], "cat /etc/version") == "two\n" and born(api, made[-1]) != copy
    until(lambda: kept(api, "app") and not older & fresh.stored("memory"), "that of the new image")
    made.append(api.create(template="app")["id"])
    assert api.out(made[-1], "cat /etc/version") == "two\n"
    for who in made:
        api.delete(who)
    api.ok("DELETE", "/v1/templates/app")
    until(lambda: not fresh.stored("memory") and not fresh.stored("points"), "nothing of it left")
    api.ok("DELETE", "/v1/images/app")


def test_what_is_made_ahead_is_a_copy_too(api, template, make):
    template("ahead", warm=2)
    until(lambda: api.ok("GET", "/v1/templates/ahead")["ready_sandboxes"] == 2, "two")
    assert kept(api, "ahead")
    seen = [born(api, make(template="ahead")["id"]) for _ in range(4)]
    assert len(set(seen)) == 1


def test_what_cannot_be_kept_boots_and_the_log_says_so_once(daemon, api, template, make):
    template("watcher", image="base", start_command=["python3", "-c", WATCHER])
    seen = {born(api, make(template="watcher")["id"])}
    until(lambda: "memory is not kept" in log_of(daemon), "a line in the log")
    seen |= {born(api, make(template="watcher")["id"]) for _ in range(2)}
    assert len(seen) == 3 and not kept(api, "watcher")
    lines = [line for line in log_of(daemon).splitlines() if "memory is not kept" in line and "template=watcher" in line]
    assert len(lines) == 1 and "inotify" in lines[0]


@pytest.mark.parametrize("damage", ["core-1.img gone", "pages-1.img cut"])
def test_memory_that_cannot_be_brought_back_is_made_anew(fresh, damage):
    api = fresh.api
    api.ok("POST", "/v1/templates", {"name": "lost", "image": "tiny", "start_command": START, "ready": READY})
    made = [api.create(template="lost")["id"]]
    until(lambda: kept(api, "lost"), "its memory")
    made.append(api.create(template="lost")["id"])
    (point,) = fresh.stored("memory")
    name, how = damage.split()  # as a power cut leaves it
    image = fresh.pool("memory", point, name)
    if how == "cut":
        os.truncate(image, 4096)
    else:
        image.unlink()
    for _ in range(3):  # each create works, by booting
        made.append(api.create(template="lost")["id"])
        assert api.out(made[-1], "cat /tmp/born")
    until(lambda: kept(api, "lost") and point not in fresh.stored("memory"), "another")
    made += [api.create(template="lost")["id"] for _ in range(2)]
    assert len({born(api, who) for who in made}) == len(made) - 1
    for who in made:
        api.delete(who)


def test_it_outlives_the_daemon_and_a_crash_leaves_none_behind(fresh):
    api = fresh.api
    body = {"image": "tiny", "start_command": START, "ready": READY}
    api.ok("POST", "/v1/templates", {"name": "stays", **body})
    made = [api.create(template="stays")["id"]]
    until(lambda: kept(api, "stays"), "its memory")
    made.append(api.create(template="stays")["id"])
    copy, there = born(api, made[-1]), fresh.stored("memory")
    for seed in range(4):
        rng = random.Random(seed)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            api.ok("POST", "/v1/templates", {"name": "goes", "warm": 1, **body})  # its memory is being made, or just was
            creating = [pool.submit(lambda: api.call("POST", "/v1/sandboxes", {"template": "stays"})) for _ in range(3)]
            until(lambda: rng.random() < 0.01, "some moment")
            fresh.kill_everything(rng.shuffle)
            for c in creating:
                try:
                    reply = c.result()
                except (OSError, http.client.HTTPException):
                    continue
                made += [reply.json["id"]] if reply.status == 201 else []
        fresh.start()
        api.ok("DELETE", "/v1/templates/goes")
        until(lambda: kept(api, "stays"), "the memory that was there")
        until(lambda: fresh.stored("memory") == there and fresh.stored("points") == there, "nothing else")
        made.append(api.create(template="stays")["id"])
        assert born(api, made[-1]) == copy
    known = {s["id"] for s in api.list(limit=1000)["sandboxes"]}
    assert known >= {m for m in made}
    for who in known:
        api.delete(who)
    api.ok("DELETE", "/v1/templates/stays")
    until(lambda: not fresh.stored("memory") and not fresh.stored("points"), "nothing left")


def test_a_keeper_that_dies_costs_a_copy_nothing(fresh):
    api = fresh.api
    api.ok("POST", "/v1/templates", {"name": "ready", "image": "tiny", "start_command": START, "ready": READY})
    made = [api.create(template="ready")["id"]]
    until(lambda: kept(api, "ready"), "its memory")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        creating = [pool.submit(lambda: api.create(template="ready")["id"]) for _ in range(4)]
        fresh.kill_keeper()
        made += [c.result() for c in creating]
    for who in made:
        assert born(api, who)
        api.delete(who)


def test_its_team_pays_for_it_and_another_gets_nothing_that_is_bound(api, template, teams):
    red, blue = teams["red"], teams["blue"]
    red.ok("POST", "/v1/secrets", {"name": "key", "value": "red's own value"})
    template("free", by=red, public=True)
    template("bound", by=red, public=True, bindings=[{"secret": "key", "host": "api.example.com"}])
    before = disk_mb(api, "red")
    made = []

    def create(by, **more):
        made.append((by, by.create(**more)["id"]))
        return {"id": made[-1][1]}
    try:
        boot_first(red, "free", lambda **more: create(red, **more))
        one = create(red, template="free")["id"]
        two = create(blue, template="red/free")["id"]
        assert born(red, one) == born(blue, two)
        assert disk_mb(api, "red") > before and not blue.ok("GET", "/v1/checkpoints")["checkpoints"]
        boot_first(red, "bound", lambda **more: create(red, **more))
        one = create(red, template="bound")["id"]
        two = create(blue, template="red/bound")["id"]  # what was bound while it was made ready is not blue's to see
        assert born(red, one) != born(blue, two)
    finally:
        for by, who in made:
            by.delete(who)
        for name in ("free", "bound"):
            red.ok("DELETE", f"/v1/templates/{name}")
        red.ok("DELETE", "/v1/secrets/key")
    until(lambda: disk_mb(api, "red") <= before, "its room")


def test_a_team_without_room_for_it_boots(daemon, api, template, teams):
    red = teams["red"]
    template("tight", by=red, disk_mb=64)
    api.ok("PATCH", "/v1/teams/red", {"quotas": {"disk_mb": disk_mb(api, "red") + 64}})
    made = red.create(template="tight")["id"]
    until(lambda: [line for line in log_of(daemon).splitlines() if "memory is not kept" in line and "template=tight" in line and "disk_mb" in line],
          "a line in the log")
    assert not kept(red, "tight") and born(red, made)
    red.delete(made)


def test_ten_at_once(api, template, make):
    template("crowd")
    boot_first(api, "crowd", make)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        made = list(pool.map(lambda i: make(template="crowd", metadata={"n": str(i)})["id"], range(20)))
        seen = set(pool.map(lambda who: born(api, who), made))
        boots = set(pool.map(lambda who: api.out(who, "cat /proc/sys/kernel/random/boot_id"), made))
    assert len(set(made)) == 20 and len(seen) == 1 and len(boots) == 20


# -- E2B's interface, and the image that its code interpreter's client stands on

def lines(reply):
    assert reply.status == 200, reply
    return [json.loads(line) for line in reply.body.decode().splitlines() if line]


class Interpreter:
    """As the client `@e2b/code-interpreter` speaks."""

    def __init__(self, api, **more):
        made = api.call("POST", "/e2b/v2/sandboxes", {"templateID": "code-interpreter", "timeout": 300, **more})
        assert made.status == 201, made
        self.api, self.id, self.token = api, made.json["sandboxID"], made.json["envdAccessToken"]

    def run(self, code, **more):
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999", "X-Access-Token": self.token,
                   "Content-Type": "application/json"}
        events = lines(self.api.call("POST", "/e2b/execute", {"code": code, **more}, headers))
        assert not [e for e in events if e["type"] == "error"], events
        return "".join(e["text"] for e in events if e["type"] == "stdout").strip()

    def refused(self, token):
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999", "X-Access-Token": token}
        return self.api.call("POST", "/e2b/execute", {"code": "1"}, headers).status


def test_the_code_interpreter_starts_from_memory(daemon, api):
    e2b_kit.bring_image(daemon, "interpreter")
    until(lambda: kept(api, "code-interpreter"), "its memory", harness.DEADLINE * 4)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: Interpreter(api, envVars={"WHO": f"n{n}"}), range(4)))
    try:
        assert len({i.token for i in made}) == 4
        for n, one in enumerate(made):
            assert one.run("import os; print(os.environ['WHO'])") == f"n{n}"
            assert one.refused(made[n - 1].token) == 401
            for other in range(4):
                if other != n:
                    assert f"n{other}" not in one.run("print(open('/proc/self/environ').read())")
        draws = [one.run("import random, uuid, ssl\nimport numpy as np\n"
                         "print(random.random(), np.random.rand(), uuid.uuid4(), ssl.RAND_bytes(16).hex())").split() for one in made]
        assert all(len(set(column)) == 4 for column in zip(*draws)), draws
        draws = {one.run("console.log(Math.random(), require('crypto').randomUUID())", language="javascript") for one in made}
        assert len(draws) == 4
        assert made[0].run("x = 1; print(x)") == "1"
    finally:
        for one in made:
            api.delete(one.id)


def test_a_built_template_starts_from_memory(daemon, api):
    name = f"built-{uuid.uuid4().hex[:8]}"
    build = api.call("POST", "/e2b/v3/templates", {"name": name}).json["buildID"]
    got = api.call("POST", f"/e2b/v2/templates/{name}/builds/{build}",
                   {"fromImage": "tiny", "startCmd": START, "readyCmd": "cat /tmp/born"})
    assert got.status == 202, got
    status = f"/e2b/templates/{name}/builds/{build}/status"
    until(lambda: api.call("GET", status).json["status"] == "ready", "the build")
    until(lambda: kept(api, name), "its memory")
    made = [api.call("POST", "/e2b/v2/sandboxes", {"templateID": name, "envVars": {"N": str(n)}}).json for n in range(3)]
    try:
        assert len({born(api, m["sandboxID"]) for m in made}) == 1
        assert [api.out(m["sandboxID"], "echo $N").strip() for m in made] == ["0", "1", "2"]
    finally:
        for m in made:
            api.delete(m["sandboxID"])
        assert api.call("DELETE", f"/e2b/templates/{name}").status == 204
