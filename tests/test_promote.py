"""A fork's files become those of the sandbox it was forked from."""
import http.client
import threading

import pytest

from harness import until


def write(api, box, text):
    api.out(box, ["sh", "-c", f"printf %s {text} > /root/state && sync"])


def read(api, box):
    return api.out(box, ["cat", "/root/state"])


def forget(api, box):
    for c in api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"]:
        api.ok("DELETE", f"/v1/checkpoints/{c['id']}")


def test_the_better_one_is_kept_and_undone(daemon, api, make):
    parent = make(metadata={"k": "v"}, env={"A": "1"})
    box = parent["id"]
    write(api, box, "old")
    copy = api.ok("POST", f"/v1/sandboxes/{box}/fork", {})["sandboxes"][0]
    assert copy["forked_from"] == box and parent["forked_from"] is None
    write(api, copy["id"], "better")
    write(api, box, "worse")
    out = api.ok("POST", f"/v1/sandboxes/{copy['id']}/promote", {})
    assert out["sandbox"]["id"] == box and out["sandbox"]["state"] == "running"
    assert (out["sandbox"]["name"], out["sandbox"]["metadata"]) == (parent["name"], {"k": "v"})
    assert out["sandbox"]["checkpoint"] == out["checkpoint"]["id"]
    assert read(api, box) == "better" == read(api, copy["id"])
    # What it had until the last moment is there to go back to.
    api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": out["before"]["id"]})
    assert read(api, box) == "worse"
    api.refused(409, "not_a_fork", "POST", f"/v1/sandboxes/{box}/promote", {})
    # The copy's own checkpoints may go, and its fork's; it still knows where it came from.
    forget(api, copy["id"])
    forget(api, box)
    write(api, copy["id"], "best")
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    ended = daemon.cli("promote", "--end", copy["id"])
    assert ended.stdout.strip() == box and "warren restore" in ended.stderr, ended.stderr
    assert read(api, box) == "best"
    api.refused(404, "sandbox_gone", "GET", f"/v1/sandboxes/{copy['id']}")
    forget(api, copy["id"])
    orphan = api.ok("POST", f"/v1/sandboxes/{box}/fork", {})["sandboxes"][0]["id"]
    forget(api, box)
    api.delete(box)
    api.refused(409, "parent_gone", "POST", f"/v1/sandboxes/{orphan}/promote", {})
    api.delete(orphan)


@pytest.mark.parametrize("victim", ["daemon", "keeper"])
def test_before_or_after_whoever_dies(fresh, victim):
    """Killed at different moments of it, the sandbox has the one or the other, and is usable."""
    api = fresh.api
    box = api.create(image="tiny")["id"]
    for attempt in range(3):
        write(api, box, f"old{attempt}")
        copy = api.ok("POST", f"/v1/sandboxes/{box}/fork", {})["sandboxes"][0]["id"]
        write(api, copy, f"new{attempt}")
        result = []

        def promote():
            try:
                result.append(api.call("POST", f"/v1/sandboxes/{copy}/promote", {}).status)
            except (OSError, http.client.HTTPException):
                result.append(None)
        thread = threading.Thread(target=promote)
        thread.start()
        threading.Event().wait(0.02 + 0.06 * attempt)
        if victim == "daemon":
            fresh.kill()
            thread.join()
            fresh.start()
        else:
            fresh.kill_keeper()
            thread.join()
        until(lambda: api.call("GET", f"/v1/sandboxes/{box}").status == 200)

        def usable():
            if api.get(box)["state"] == "stopped":
                api.call("POST", f"/v1/sandboxes/{box}/start")
            return api.get(box)["state"] == "running" and api.call(
                "POST", f"/v1/sandboxes/{box}/exec", {"argv": ["true"]}).status == 200
        until(usable)
        state = read(api, box)
        assert state == f"new{attempt}" if result == [200] else state in (f"old{attempt}", f"new{attempt}")
        api.delete(copy)
    # Every checkpoint that is told of can be used.
    for c in api.ok("GET", "/v1/checkpoints")["checkpoints"]:
        api.delete(api.ok("POST", f"/v1/checkpoints/{c['id']}/sandboxes", {})["id"])
