"""The change feed."""
from harness import until


def test_the_life_of_a_sandbox_is_told_in_order(api):
    who = api.create(image="tiny")["id"]
    api.wait(who, api.start(who, ["true"])["process"])
    api.wait_event("process.ended", who)
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"metadata": {"a": "b"}})
    api.ok("POST", f"/v1/sandboxes/{who}/stop")
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    api.delete(who)
    until(lambda: "sandbox.deleted" in [e["type"] for e in api.events(0, who)["events"]])
    events = api.events(0, who)["events"]
    types = [e["type"] for e in events]
    assert types[0] == "sandbox.created" and types[-1] == "sandbox.deleted"
    for kind in ("sandbox.started", "process.started", "process.ended", "sandbox.updated",
                 "sandbox.stopped"):
        assert kind in types, types
    assert types.index("process.started") < types.index("process.ended")
    seqs = [e["seq"] for e in events]
    assert seqs == sorted(set(seqs)) and all(e["sandbox"] == who and e["time"] for e in events)
    assert next(e for e in events if e["type"] == "sandbox.stopped")["data"]["cause"] == "stopped"
    assert events[-1]["data"]["cause"] == "deleted"


def test_reading_on_from_a_number(api):
    who = api.create(image="tiny")["id"]
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"metadata": {"a": "b"}})
    first = api.events(0, who, limit=1)
    assert len(first["events"]) == 1
    rest = api.events(first["next"], who)
    assert rest["events"] and rest["events"][0]["seq"] > first["events"][0]["seq"]
    nothing = api.events(rest["next"], who)
    assert nothing["events"] == []
    api.delete(who)


def test_following_sees_what_happens_next(api):
    start = api.events(0, limit=1000)["next"]
    while (page := api.events(start))["events"]:
        start = page["next"]
    with api.stream("GET", f"/v1/events?since={start}&follow=true") as stream:
        who = api.create(image="tiny")["id"]
        assert stream.until(type="sandbox.created", sandbox=who)
        api.delete(who)
        assert stream.until(type="sandbox.deleted", sandbox=who)


def test_images_and_keys_are_told_too(api, tiny_tar):
    api.import_image("told", tiny_tar)
    api.ok("DELETE", "/v1/images/told")
    key = api.ok("POST", "/v1/keys", {"name": "told"})
    api.ok("DELETE", f"/v1/keys/{key['id']}")
    events, since = [], 0
    while (page := api.events(since))["events"]:
        events += page["events"]
        since = page["next"]
    types = {e["type"] for e in events}
    assert {"image.added", "image.removed", "key.added", "key.removed"} <= types
    assert key["key"] not in str(events)


def test_events_survive_a_restart(fresh):
    who = fresh.api.create(image="tiny")["id"]
    before = fresh.api.events(0, who)["events"]
    fresh.restart()
    after = fresh.api.events(0, who)["events"]
    assert after[:len(before)] == before
    fresh.api.delete(who)
    assert fresh.api.wait_event("sandbox.deleted", who, since=before[-1]["seq"])["seq"] > before[-1]["seq"]
