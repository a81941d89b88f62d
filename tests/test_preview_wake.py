"""A sandbox that sleeps wakes on a request; one that is dead says so."""
import concurrent.futures
import json
import uuid

import pytest

import harness
from harness import until
from preview_kit import SERVER, get, host_of, serve

LONG = harness.DEADLINE * 3


@pytest.fixture(scope="module")
def template(daemon):
    """One whose sandboxes serve port 3000 from their start on, after a while."""
    name = "wake-" + uuid.uuid4().hex[:8]
    command = ["sh", "-c", "sleep 0.3; exec python3 -c \"$SERVER\" 3000"]
    daemon.api.ok("POST", "/v1/templates", {"name": name, "image": "base", "start_command": command,
                                            "env": {"SERVER": SERVER}})
    yield name
    daemon.api.call("DELETE", f"/v1/templates/{name}")


def slept(daemon, box):
    """Stopped by its timeout."""
    daemon.api.ok("PATCH", f"/v1/sandboxes/{box}", {"timeout_s": 0.1})
    until(lambda: daemon.api.get(box)["state"] == "stopped", "its time to be over")
    daemon.api.ok("PATCH", f"/v1/sandboxes/{box}", {"timeout_s": 3600})
    assert daemon.api.get(box)["stop_cause"] == "timeout"


@pytest.fixture(scope="module")
def sleeper(daemon, template):
    box = daemon.api.create(template=template, on_timeout="stop", timeout_s=3600)["id"]
    yield box
    daemon.api.call("DELETE", f"/v1/sandboxes/{box}")


def test_a_request_wakes_it_and_is_answered(daemon, sleeper):
    host = host_of(sleeper, 3000)
    # Just started, its server not yet there: no reason for a 502.
    assert get(daemon, host, timeout=LONG).status == 200
    slept(daemon, sleeper)
    assert get(daemon, host, "/a", timeout=LONG).json["path"] == "/a"
    assert daemon.api.get(sleeper)["state"] == "running"


def test_all_that_come_while_it_wakes_are_answered(daemon, sleeper):
    slept(daemon, sleeper)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        replies = list(pool.map(lambda i: get(daemon, host_of(sleeper, 3000), f"/{i}", timeout=LONG), range(100)))
    assert [r.json["path"] for r in replies] == [f"/{i}" for i in range(100)]
    started = [e for e in daemon.api.events(sandbox=sleeper)["events"] if e["type"] == "sandbox.started"]
    stopped = [e for e in daemon.api.events(sandbox=sleeper)["events"] if e["type"] == "sandbox.stopped"]
    assert len(started) == len(stopped), "one start for each stop"


def test_only_what_fell_asleep_wakes_unless_it_says_so(daemon, sleeper):
    host, path = host_of(sleeper, 3000), f"/v1/sandboxes/{sleeper}"
    try:
        daemon.api.ok("POST", path + "/stop")
        refused = get(daemon, host)
        assert refused.status == 502 and refused.code == "sandbox_not_running"
        assert refused.json["error"]["cause"] == "stopped"
        assert daemon.api.ok("PATCH", path, {"wake": "always"})["wake"] == "always"
        assert get(daemon, host, timeout=LONG).status == 200
        slept(daemon, sleeper)
        daemon.api.ok("PATCH", path, {"wake": "never"})
        assert get(daemon, host).code == "sandbox_not_running"
        page = get(daemon, host, headers={"Accept": "text/html"})
        assert b"Its time was over." in page.body
    finally:
        daemon.api.ok("PATCH", path, {"wake": "auto"})


def test_a_stranger_does_not_wake_a_private_one(daemon, sleeper):
    host, path = host_of(sleeper, 3000), f"/v1/sandboxes/{sleeper}"
    if daemon.api.get(sleeper)["state"] == "running":
        slept(daemon, sleeper)
    daemon.api.ok("PATCH", path, {"preview": "private"})
    try:
        assert get(daemon, host).status == 403
        assert daemon.api.get(sleeper)["state"] == "stopped"
        assert get(daemon, host, headers={"X-API-Key": harness.KEY}, timeout=LONG).status == 200
    finally:
        daemon.api.ok("PATCH", path, {"preview": "public"})


def test_one_without_a_start_command_waits_for_what_its_owner_starts(daemon):
    box = daemon.api.create(on_timeout="stop")["id"]
    try:
        slept(daemon, box)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(get, daemon, host_of(box, 3000), timeout=LONG)
            until(lambda: daemon.api.get(box)["state"] == "running", "the request to wake it")
            serve(daemon.api, box, 3000)
            reply = waiting.result()
        # On a slow machine the server may be late: then the answer says so, and the next one is right.
        assert reply.status == 200 or reply.code == "port_closed", reply
        assert get(daemon, host_of(box, 3000)).status == 200
    finally:
        daemon.api.delete(box)


def test_a_dead_one_tells_how_it_ended(daemon):
    box = daemon.api.create(timeout_s=0.2)["id"]
    host = host_of(box, 3000)
    until(lambda: get(daemon, host).code == "sandbox_gone", "its end")
    reply = get(daemon, host)
    assert reply.status == 502 and reply.json["error"]["cause"] == "timeout"
    assert reply.json["error"]["ended_at"].startswith("20") and reply.json["sandboxId"] == box
    page = get(daemon, host, headers={"Accept": "text/html"})
    assert page.headers["Content-Type"].startswith("text/html")
    assert b"it has ended" in page.body and b"Its time was over. 20" in page.body
    deleted = daemon.api.create()["id"]
    daemon.api.delete(deleted)
    assert json.loads(get(daemon, host_of(deleted, 1)).body)["error"]["cause"] == "deleted"
    assert get(daemon, host_of("a" * 20, 80)).code == "sandbox_not_found"


@pytest.mark.parametrize("state", ["frozen", "paused"])
def test_one_whose_processes_were_put_to_sleep_answers_with_them(daemon, state):
    """No start, no new server: the one that ran answers, with the pid it had."""
    api = daemon.api
    box = api.create(**({"freeze_after_s": 0.5} if state == "frozen" else {}))["id"]
    try:
        serve(api, box, 3000)
        pid = api.process(box, 1)["pid"]
        if state == "paused":
            api.ok("POST", f"/v1/sandboxes/{box}/pause")
        until(lambda: api.get(box)["state"] == state, state)
        assert get(daemon, host_of(box, 3000), timeout=LONG).status == 200
        server = api.process(box, 1)
        assert server["pid"] == pid and server["state"] == "running"
    finally:
        api.delete(box)


def test_a_server_that_thinks_is_not_put_to_sleep(daemon):
    """Nothing passes and no cpu is used while a request waits for its answer: it is at work nevertheless."""
    box = daemon.api.create(freeze_after_s=0.5)["id"]
    try:
        serve(daemon.api, box, 3000)
        assert get(daemon, host_of(box, 3000), "/think?times=3", timeout=LONG).body == b"thought"
    finally:
        daemon.api.delete(box)
