"""Sandboxes: made, found, changed, stopped, started, ended."""
import datetime
import re

import pytest

from harness import until


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_a_new_sandbox_runs_with_the_documented_defaults(api, tiny):
    s = api.get(tiny)
    assert re.fullmatch("[a-z][a-z0-9]{19}", s["id"])
    assert s["state"] == "running"
    want = {"image": "tiny", "name": None, "cpus": 1, "memory_mb": 512, "disk_mb": 10240, "pids": 512,
            "nofile": 65536, "env": {}, "metadata": {}, "user": "root", "timeout_s": None,
            "on_timeout": "delete", "idle_timeout_s": None, "on_idle": "stop", "expires_at": None,
            "freeze_after_s": None, "checkpoints": None, "frozen_at": None, "awake_until": None,
            "stopped_at": None, "stop_cause": None}
    assert {k: s[k] for k in want} == want
    assert when(s["created_at"]) <= when(s["started_at"])


def test_all_that_was_asked_for_is_told_back(api, make):
    spec = {"image": "tiny", "name": "told.back_1", "cpus": 0.5, "memory_mb": 64, "disk_mb": 64,
            "pids": 40, "nofile": 256, "env": {"A": "1"}, "metadata": {"team": "blue"},
            "user": "user", "workdir": "/tmp", "timeout_s": 600, "on_timeout": "stop",
            "idle_timeout_s": 500, "on_idle": "delete"}
    s = make(**spec)
    assert {k: s[k] for k in spec} == spec
    assert api.get("told.back_1") == api.get(s["id"])
    left = when(s["expires_at"]) - when(s["started_at"])
    assert abs(left.total_seconds() - 600) < 5


def test_defaults_of_commands_come_from_the_sandbox(api, make):
    who = make(image="tiny", env={"A": "1", "B": "2"}, user="user", workdir="/tmp")["id"]
    assert api.out(who, "echo $A $B; id -u; pwd").split() == ["1", "2", "1000", "/tmp"]
    assert api.out(who, "echo $A $B; id -u; pwd", env={"B": "3"}, user="root", cwd="/").split() == \
        ["1", "3", "0", "/"]


def test_the_workdir_is_the_users_home_unless_given(api, make):
    who = make(image="tiny", user="user")["id"]
    assert api.out(who, "pwd; echo $HOME").split() == ["/home/user", "/home/user"]


def test_the_host_name_is_the_id(api, tiny):
    assert api.out(tiny, ["hostname"]).strip() == tiny


def test_a_name_is_unique_and_free_again_after_its_sandbox(api, make):
    first = make(image="tiny", name="only-one")
    api.refused(409, "name_taken", "POST", "/v1/sandboxes", {"image": "tiny", "name": "only-one"})
    api.delete("only-one")
    second = make(image="tiny", name="only-one")
    assert second["id"] != first["id"]
    assert api.get("only-one")["id"] == second["id"]


def test_a_name_works_wherever_an_id_does(api, make):
    make(image="tiny", name="by-name")
    assert api.out("by-name", ["echo", "x"]) == "x\n"
    n = api.start("by-name", ["sleep", "100"])["process"]
    assert api.process("by-name", n)["state"] == "running"
    assert api.usage("by-name")["pids"] >= 1
    assert api.ok("POST", "/v1/sandboxes/by-name/stop")["state"] == "stopped"
    assert api.ok("POST", "/v1/sandboxes/by-name/start")["state"] == "running"


def test_lists_filter_by_metadata_state_and_name(api, make):
    a = make(image="tiny", metadata={"lot": "f1", "n": "a"}, name="filter-a")["id"]
    b = make(image="tiny", metadata={"lot": "f1", "n": "b"})["id"]
    make(image="tiny", metadata={"lot": "f2"})
    api.ok("POST", f"/v1/sandboxes/{b}/stop")

    def ids(**query):
        return [s["id"] for s in api.list(**query)["sandboxes"]]
    assert set(ids(metadata__lot="f1")) == {a, b}
    assert ids(metadata__lot="f1", metadata__n="b") == [b]
    assert ids(metadata__lot="f1", state="running") == [a]
    assert ids(metadata__lot="f1", state="stopped") == [b]
    assert set(ids(metadata__lot="f1", state="running,stopped")) == {a, b}
    assert ids(name="filter-a") == [a]
    assert ids(metadata__lot="none") == []


def test_pages_are_stable_while_sandboxes_come_and_go(api, make):
    made = [make(image="tiny", metadata={"lot": "pages"})["id"] for _ in range(7)]
    listed = api.list(metadata__lot="pages", order="asc")["sandboxes"]
    times = [s["created_at"] for s in listed]
    assert {s["id"] for s in listed} == set(made) and times == sorted(times)
    made = [s["id"] for s in listed]  # as made, but for those of one millisecond
    assert [s["id"] for s in api.list(metadata__lot="pages")["sandboxes"]] == made[::-1]

    seen, cursor, removed, pages = [], None, made[3], 0
    while True:
        query = {"metadata__lot": "pages", "order": "asc", "limit": 2}
        page = api.list(**query, **({"cursor": cursor} if cursor else {}))
        seen += [s["id"] for s in page["sandboxes"]]
        pages += 1
        cursor = page["next_cursor"]
        if pages == 1:
            api.delete(removed)          # ahead of the cursor: not seen
            api.delete(made[0])          # behind it: moves nothing
        if not cursor:
            break
    assert seen == [i for i in made if i != removed]


def test_update_changes_what_it_names_and_nothing_else(api, make):
    s = make(image="tiny", name="before", metadata={"a": "1"}, env={"E": "1"})
    s = api.ok("PATCH", f"/v1/sandboxes/{s['id']}",
               {"name": "after", "metadata": {"b": "2"}, "env": {"E": "2"}, "timeout_s": 900,
                "on_timeout": "stop", "memory_mb": 128, "pids": 64, "cpus": 2})
    assert (s["name"], s["metadata"], s["env"], s["timeout_s"], s["on_timeout"]) == \
        ("after", {"b": "2"}, {"E": "2"}, 900, "stop")
    assert (s["memory_mb"], s["pids"], s["cpus"], s["disk_mb"]) == (128, 64, 2, 10240)
    assert s["expires_at"]
    assert api.out("after", "echo $E") == "2\n"
    s = api.ok("PATCH", f"/v1/sandboxes/{s['id']}", {"timeout_s": None})
    assert s["expires_at"] is None and s["name"] == "after"
    api.refused(404, "sandbox_not_found", "GET", "/v1/sandboxes/before")


def test_update_to_a_taken_name_is_refused(api, make):
    make(image="tiny", name="here-first")
    s = make(image="tiny")
    api.refused(409, "name_taken", "PATCH", f"/v1/sandboxes/{s['id']}", {"name": "here-first"})


def test_stop_ends_the_processes_and_keeps_the_files(api, tiny):
    api.out(tiny, "echo kept > /root/file; chown 1000:1000 /root/file")
    api.start(tiny, ["sleep", "1000"])
    s = api.ok("POST", f"/v1/sandboxes/{tiny}/stop")
    assert (s["state"], s["stop_cause"]) == ("stopped", "stopped") and s["stopped_at"]
    error = api.refused(409, "sandbox_not_running", "POST", f"/v1/sandboxes/{tiny}/exec", {"argv": ["true"]})
    assert "warren start" in error["message"]
    s = api.ok("POST", f"/v1/sandboxes/{tiny}/start")
    assert s["state"] == "running"
    assert api.out(tiny, "cat /root/file; stat -c %u /root/file").split() == ["kept", "1000"]
    assert "sleep" not in api.out(tiny, ["ps"])


def test_stop_and_start_again_and_again(api, tiny):
    for i in range(3):
        api.out(tiny, f"echo {i} >> /root/log")
        api.ok("POST", f"/v1/sandboxes/{tiny}/stop")
        api.ok("POST", f"/v1/sandboxes/{tiny}/start")
    assert api.out(tiny, ["cat", "/root/log"]).split() == ["0", "1", "2"]


def test_a_deleted_sandbox_says_how_it_ended(api):
    who = api.create(image="tiny", name="short-lived")["id"]
    api.delete(who)
    error = api.refused(404, "sandbox_gone", "GET", f"/v1/sandboxes/{who}")
    assert error["cause"] == "deleted" and when(error["ended_at"])
    api.refused(404, "sandbox_gone", "POST", f"/v1/sandboxes/{who}/exec", {"argv": ["true"]})
    assert who not in [s["id"] for s in api.list(limit=1000)["sandboxes"]]


def test_a_stopped_sandbox_can_be_deleted(api):
    who = api.create(image="tiny")["id"]
    api.ok("POST", f"/v1/sandboxes/{who}/stop")
    api.delete(who)
    api.refused(404, "sandbox_gone", "GET", f"/v1/sandboxes/{who}")


def test_end_of_life_deletes(api):
    who = api.create(image="tiny", timeout_s=1)["id"]
    assert api.wait_event("sandbox.deleted", who)["data"]["cause"] == "timeout"
    error = api.refused(404, "sandbox_gone", "GET", f"/v1/sandboxes/{who}")
    assert error["cause"] == "timeout"


def test_end_of_life_stops_where_asked_to(api, make):
    who = make(image="tiny", timeout_s=1, on_timeout="stop")["id"]
    assert api.wait_event("sandbox.stopped", who)["data"]["cause"] == "timeout"
    s = until(lambda: (s := api.get(who))["state"] == "stopped" and s, "the stop")
    assert s["stop_cause"] == "timeout"
    assert api.ok("POST", f"/v1/sandboxes/{who}/start")["state"] == "running"


def test_a_timeout_set_later_counts_from_then(api, make):
    who = make(image="tiny", timeout_s=1000)["id"]
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"timeout_s": 1})
    assert api.wait_event("sandbox.deleted", who)["data"]["cause"] == "timeout"


def test_an_idle_sandbox_stops(api, make):
    who = make(image="tiny", idle_timeout_s=1)["id"]
    assert api.wait_event("sandbox.stopped", who)["data"]["cause"] == "idle"
    assert until(lambda: api.get(who)["state"] == "stopped")


def test_a_command_that_works_is_not_idle(api, make):
    who = make(image="tiny", idle_timeout_s=1, on_idle="delete")["id"]
    api.start(who, ["timeout", "3", "sh", "-c", "while :; do :; done"])
    ended = api.wait_event("process.ended", who)
    gone = api.wait_event("sandbox.deleted", who)
    assert gone["data"]["cause"] == "idle"
    assert when(gone["time"]) >= when(ended["time"])


def test_usage_counts(api, tiny):
    api.out(tiny, "dd if=/dev/zero of=/root/f bs=1M count=8 2>/dev/null; sync; "
                  "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
    usage = api.usage(tiny)
    assert set(usage) == {"cpu_us", "memory_bytes", "memory_peak_bytes", "disk_bytes", "pids",
                          "oom_kills"}
    assert usage["cpu_us"] > 0 and usage["memory_peak_bytes"] > 0 and usage["oom_kills"] == 0
    assert usage["disk_bytes"] >= 8 << 20


@pytest.mark.parametrize("count", [20])
def test_many_at_once(api, count):
    from concurrent.futures import ThreadPoolExecutor

    def life(i):
        who = api.create(image="tiny")["id"]
        out = api.out(who, f"echo {i}")
        api.delete(who)
        return out
    with ThreadPoolExecutor(10) as pool:
        assert list(pool.map(life, range(count))) == [f"{i}\n" for i in range(count)]
