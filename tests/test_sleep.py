"""Sandboxes that nobody needs: frozen, woken by any touch, ended as they were told; leases against it."""
import time

import pytest

import harness
from harness import counting, until


NOTHING_US = 2000  # of processor time: init's is counted too


def frozen(api, who):
    return api.get(who)["state"] == "frozen"


@pytest.fixture
def sleeper(api, make):
    return make(image="tiny", freeze_after_s=1)["id"]


def test_an_idle_one_is_frozen_and_a_command_wakes_it(api, sleeper):
    api.start(sleeper, counting("/tmp/ticks", 0.5))
    event = api.wait_event("sandbox.frozen", sleeper)
    s = api.get(sleeper)
    assert event and s["state"] == "frozen" and s["frozen_at"]
    cpu = api.usage(sleeper)["cpu_us"]
    listed = api.ok("GET", "/v1/sandboxes?state=frozen")["sandboxes"]
    assert sleeper in [b["id"] for b in listed]
    time.sleep(2.5)  # a span in which it would have counted, at a millisecond or more each time
    assert api.usage(sleeper)["cpu_us"] - cpu < NOTHING_US and frozen(api, sleeper)
    first = int(api.out(sleeper, "cat /tmp/ticks"))
    assert api.wait_event("sandbox.thawed", sleeper)
    s = api.get(sleeper)
    assert (s["frozen_at"] is None) == (s["state"] == "running")  # on a slow machine it sleeps again
    assert until(lambda: int(api.out(sleeper, "cat /tmp/ticks")) > first)


def test_work_keeps_it_awake(api, make):
    busy = make(image="tiny", freeze_after_s=1)["id"]
    idle = make(image="tiny", freeze_after_s=1)["id"]
    api.start(busy, "while :; do :; done")
    api.start(idle, "sleep 1000")
    for _ in range(2):
        api.wait_event("sandbox.frozen", idle)
        assert api.get(busy)["state"] == "running"
        api.out(idle, "true")
        assert until(lambda: frozen(api, idle))
    assert api.get(busy)["state"] == "running"


def test_files_wake_it_too(api, sleeper):
    assert until(lambda: frozen(api, sleeper))
    api.ok("PUT", f"/v1/sandboxes/{sleeper}/files?path=/root/f", b"text",
           headers={"Content-Type": "application/octet-stream"})
    api.wait_event("sandbox.thawed", sleeper)
    assert until(lambda: frozen(api, sleeper))


def test_a_checkpoint_leaves_it_frozen_and_a_stop_is_graceful(api, sleeper):
    api.start(sleeper, "trap 'echo bye > /root/bye; exit' TERM; sleep 1000 & wait")
    assert until(lambda: frozen(api, sleeper))
    c = api.ok("POST", f"/v1/sandboxes/{sleeper}/checkpoints", {})
    assert c["id"] and frozen(api, sleeper)
    api.ok("POST", f"/v1/sandboxes/{sleeper}/stop")
    assert api.get(sleeper)["state"] == "stopped" and api.get(sleeper)["frozen_at"] is None
    api.ok("POST", f"/v1/sandboxes/{sleeper}/start")
    assert api.out(sleeper, "cat /root/bye") == "bye\n"


def test_frozen_first_and_then_its_end(api, make):
    who = make(image="tiny", freeze_after_s=0.5, idle_timeout_s=2, on_idle="checkpoint")["id"]
    api.wait_event("sandbox.frozen", who)
    assert api.wait_event("sandbox.stopped", who)["data"]["cause"] == "idle"
    kept = until(lambda: api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"])
    assert [c["reason"] for c in kept] == ["idle"]


def test_one_that_is_deleted_while_frozen_is_gone(api, make):
    who = make(image="tiny", freeze_after_s=0.3)["id"]
    assert until(lambda: frozen(api, who))
    api.delete(who)
    api.refused(404, "sandbox_gone", "GET", f"/v1/sandboxes/{who}")


def test_a_lease_keeps_it_awake(api, make):
    who = make(image="tiny", freeze_after_s=0.5, idle_timeout_s=600)["id"]
    assert until(lambda: frozen(api, who))
    lease = api.ok("POST", f"/v1/sandboxes/{who}/leases", {"seconds": 600, "reason": "a long think"})
    s = api.get(who)
    assert s["state"] == "running" and s["awake_until"] == lease["expires_at"]
    other = make(image="tiny", freeze_after_s=0.5)["id"]
    assert until(lambda: frozen(api, other))  # a whole span later
    assert api.get(who)["state"] == "running"
    assert api.ok("GET", f"/v1/sandboxes/{who}/leases")["leases"] == [lease]
    api.ok("DELETE", f"/v1/sandboxes/{who}/leases/{lease['id']}")
    assert api.get(who)["awake_until"] is None and until(lambda: frozen(api, who))
    api.refused(404, "lease_not_found", "DELETE", f"/v1/sandboxes/{who}/leases/{lease['id']}")
    api.refused(400, "missing_field", "POST", f"/v1/sandboxes/{who}/leases", {})
    api.refused(400, "invalid_field", "POST", f"/v1/sandboxes/{who}/leases", {"seconds": 1e6})
    for _ in range(16):
        api.ok("POST", f"/v1/sandboxes/{who}/leases", {"seconds": 60})
    api.refused(409, "lease_limit", "POST", f"/v1/sandboxes/{who}/leases", {"seconds": 60})


def test_what_sleeps_and_who_keeps_it_awake_outlive_us(fresh):
    api = fresh.api
    asleep = api.create(image="tiny", freeze_after_s=0.5)["id"]
    held = api.create(image="tiny", freeze_after_s=0.5)["id"]
    lease = api.ok("POST", f"/v1/sandboxes/{held}/leases", {"seconds": 600})
    api.start(asleep, counting("/tmp/ticks", 0.3))
    assert until(lambda: frozen(api, asleep))
    cpu = api.usage(asleep)["cpu_us"]
    fresh.kill_keeper()
    until(lambda: api.call("GET", f"/v1/sandboxes/{asleep}/usage").status == 200)
    assert frozen(api, asleep) and api.usage(asleep)["cpu_us"] - cpu < NOTHING_US
    fresh.kill()
    fresh.start()
    assert frozen(api, asleep) and api.usage(asleep)["cpu_us"] - cpu < NOTHING_US
    assert api.get(held)["awake_until"] == lease["expires_at"] and not frozen(api, held)
    api.out(asleep, "true")
    seen = int(api.out(asleep, "cat /tmp/ticks"))
    assert until(lambda: int(api.out(asleep, "cat /tmp/ticks")) > seen)


def test_time_asleep_is_no_memory_used(tiny_tar):
    with harness.running("--usage-interval", "1", images={"tiny": tiny_tar}) as d:
        api = d.api
        who = api.create(image="tiny", freeze_after_s=0.5)["id"]
        api.start(who, "head -c 50000000 /dev/zero | tail -c 50000000 > /dev/shm/x; sleep 1000")
        assert until(lambda: api.usage(who)["memory_bytes"] > 40e6)
        assert until(lambda: frozen(api, who))

        def used():
            return api.ok("GET", f"/v1/usage?sandbox={who}")["total"]["memory_gib_seconds"]

        def unchanged():
            """What was used until then may be counted late."""
            before = used()
            time.sleep(3)  # 0.14 GiB s, were it counted
            return used() - before < 0.01
        until(unchanged, "an end of the counting")
        assert frozen(api, who)


def test_a_timeout_may_pause(api, make):
    idle = make(image="tiny", idle_timeout_s=0.5, on_idle="pause")["id"]
    over = make(image="tiny", timeout_s=1, on_timeout="pause")["id"]
    n = api.start(idle, "sleep 1000")["process"]

    def told(who):
        return {e["type"]: e["data"] for e in api.ok("GET", f"/v1/events?sandbox={who}")["events"]}
    until(lambda: {"sandbox.paused", "sandbox.pause_failed"} & set(told(idle)))
    if "sandbox.paused" in told(idle):
        assert told(idle)["sandbox.paused"]["cause"] == "idle"
        assert until(lambda: api.get(over)["state"] == "paused")
        assert told(over)["sandbox.paused"]["cause"] == "timeout"
        api.out(idle, "true")
        assert api.process(idle, n)["state"] == "running"  # woken, with what it ran
    else:  # one that is idle goes on; one whose time is over must end
        assert told(idle)["sandbox.pause_failed"]["code"] in ("memory_unsupported", "cannot_dump")
        assert api.get(idle)["state"] == "running"
        assert until(lambda: api.get(over)["state"] == "stopped") and api.get(over)["stop_cause"] == "timeout"


def test_the_command_line_speaks_of_sleep(api, daemon):
    made = daemon.cli("create", "--image", "tiny", "--freeze-after", "1h", "--on-idle", "checkpoint",
                      "--checkpoints", "every=10m,stop,last=5,for=2d").stdout.strip()
    try:
        s = api.get(made)
        assert s["freeze_after_s"] == 3600 and s["on_idle"] == "checkpoint"
        assert s["checkpoints"] == {"every_s": 600, "before_each_command": False, "on_stop": True,
                                    "keep": {"last": 5, "for_s": 172800, "hourly": None, "daily": None}}
        lease = daemon.cli("keep-awake", "--for", "5m", "--reason", "why not", made).stdout.strip()
        assert lease in daemon.cli("lease", "ls", made).stdout
        shown = daemon.cli("get", made).stdout
        assert "every 10 m, on stop" in shown and "awake" in shown and "after 60 m of idleness" in shown
        daemon.cli("lease", "rm", made, lease)
        daemon.cli("update", "--checkpoints", "none", "--freeze-after", "none", made)
        s = api.get(made)
        assert s["checkpoints"] is None and s["freeze_after_s"] is None and s["awake_until"] is None
    finally:
        api.delete(made)


# ---- checkpoints by policy ----

def reasons(api, who):
    return [c["reason"] for c in api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"]]


def test_before_each_command_and_on_stop(api, make):
    who = make(image="tiny", checkpoints={"before_each_command": True, "on_stop": True, "keep": {"last": 3}})["id"]
    assert api.get(who)["checkpoints"]["keep"]["last"] == 3
    for n in range(3):
        api.out(who, f"echo {n} > /root/state")
    assert reasons(api, who) == ["command"] * 3
    asked = api.ok("POST", f"/v1/sandboxes/{who}/checkpoints", {})
    api.out(who, "true")
    api.out(who, "true")  # nothing was written between these: no checkpoint
    assert reasons(api, who) == ["command"] * 3 + ["asked"]
    second = api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"][1]
    assert second["parent"]
    api.out(who, "echo 4 > /root/state")
    api.out(who, "echo 5 > /root/state")
    api.ok("POST", f"/v1/sandboxes/{who}/stop")
    assert sorted(reasons(api, who)) == ["asked", "command", "command", "stop"]
    assert asked["id"] in [c["id"] for c in api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"]]
    last = api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"][-2]
    api.ok("POST", f"/v1/sandboxes/{who}/restore", {"checkpoint": last["id"]})
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"checkpoints": None})
    assert api.out(who, "cat /root/state") == "4\n"
    api.delete(who)
    assert [c["id"] for c in api.ok("GET", "/v1/checkpoints")["checkpoints"] if c["sandbox"] == who] == [asked["id"]]
    api.ok("DELETE", f"/v1/checkpoints/{asked['id']}")


def test_at_intervals_and_through_a_restart(fresh):
    api = fresh.api
    who = api.create(image="tiny", checkpoints={"every_s": 1, "keep": {"last": 2}})["id"]
    named = api.ok("POST", f"/v1/sandboxes/{who}/checkpoints", {"name": "mine"})
    api.start(who, "i=0; while :; do i=$((i+1)); echo $i > /root/n; sync; sleep 0.2; done")
    taken = set()

    def several(n):
        taken.update(c["id"] for c in api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"]
                     if c["reason"] == "interval")
        return len(taken) >= n
    assert until(lambda: several(3))
    fresh.kill()
    fresh.start()
    assert until(lambda: several(5))
    assert until(lambda: reasons(api, who).count("interval") == 2)
    assert named["id"] in [c["id"] for c in api.ok("GET", f"/v1/sandboxes/{who}/checkpoints")["checkpoints"]]


@pytest.mark.parametrize("policy", [{"every_s": 0.01}, {"keep": {"last": 0}}, {"keep": 3}, {"often": True}, 7,
                                    {"on_stop": "yes"}])
def test_a_policy_that_makes_no_sense(api, policy):
    reply = api.call("POST", "/v1/sandboxes", {"image": "tiny", "checkpoints": policy})
    assert reply.status == 400, reply
