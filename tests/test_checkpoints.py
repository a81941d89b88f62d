"""Checkpoints of a sandbox's files: taken while it runs, gone back to, forked."""
import os
import uuid

import pytest

from harness import DEADLINE, counting, until


def take(api, box, **body):
    return api.ok("POST", f"/v1/sandboxes/{box}/checkpoints", body)


def restore(api, box, checkpoint):
    return api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": checkpoint})


def write(api, box, text, path="/root/state"):
    api.out(box, ["sh", "-c", f"printf %s {text} > {path}"])


def read(api, box, path="/root/state"):
    return api.out(box, ["cat", path])


def test_there_and_back(api, box):
    write(api, box, "one")
    first = take(api, box, name="first", comment="before the storm", metadata={"k": "v"})
    assert first["parent"] is None and first["comment"] == "before the storm" and first["metadata"] == {"k": "v"}
    write(api, box, "two")
    api.out(box, ["rm", "/etc/shells"])
    second = take(api, box)
    assert second["parent"] == first["id"] and second["name"] is None
    back = restore(api, box, "first")
    assert back["state"] == "running" and back["checkpoint"] == first["id"]
    assert read(api, box) == "one" and api.out(box, ["ls", "/etc/shells"])
    write(api, box, "three")
    third = take(api, box)
    assert third["parent"] == first["id"]
    restore(api, box, second["id"])
    assert read(api, box) == "two"
    listed = api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"]
    assert [c["id"] for c in listed] == [first["id"], second["id"], third["id"]]
    api.refused(409, "name_taken", "POST", f"/v1/sandboxes/{box}/checkpoints", {"name": "first"})
    api.refused(404, "checkpoint_not_found", "POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": "nothing"})
    api.refused(400, "missing_field", "POST", f"/v1/sandboxes/{box}/restore", {})


def test_names_may_be_as_long_as_they_may(api, make):
    box = make(image="tiny", name="s" * 63)["id"]
    take(api, box, name="c" * 63)
    who = "s" * 63 + ":" + "c" * 63
    assert api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": who})["state"] == "running"
    api.ok("DELETE", f"/v1/checkpoints/{who}")


def test_no_way_gives_a_sandbox_a_name_that_looks_like_an_id(api, make):
    """Such a name could stand for another sandbox."""
    box = make(image="tiny")["id"]
    mark = api.ok("POST", f"/v1/sandboxes/{box}/checkpoints", {})["id"]
    before = len(api.list()["sandboxes"])
    for method, path, body in (("POST", "/v1/sandboxes", {"image": "tiny"}), ("PATCH", f"/v1/sandboxes/{box}", {}),
                               ("POST", f"/v1/checkpoints/{mark}/sandboxes", {})):
        for name in (box, "b" * len(box)):
            error = api.refused(400, "invalid_field", method, path, {**body, "name": name})
            assert "shape of an id" in error["message"]
    assert len(api.list()["sandboxes"]) == before


def test_removing_one_hurts_no_other(api, box):
    marks = []
    for text in "abc":
        write(api, box, text)
        marks.append(take(api, box))
    api.ok("DELETE", f"/v1/checkpoints/{marks[1]['id']}")
    assert api.ok("GET", f"/v1/checkpoints/{marks[2]['id']}")["parent"] == marks[0]["id"]
    for i in (0, 2):
        restore(api, box, marks[i]["id"])
        assert read(api, box) == "abc"[i]
    api.refused(404, "checkpoint_not_found", "DELETE", f"/v1/checkpoints/{marks[1]['id']}")


def test_what_came_from_a_removed_one_stays_in_its_place(fresh):
    api = fresh.api
    box = api.create(image="tiny")["id"]
    marks = [take(api, box)["id"] for _ in range(3)]
    copy = api.ok("POST", f"/v1/sandboxes/{box}/fork", {})
    api.ok("DELETE", f"/v1/checkpoints/{copy['checkpoint']['id']}")
    api.ok("DELETE", f"/v1/checkpoints/{marks[1]}")
    fresh.kill()
    fresh.start()
    places = {s["id"]: s["checkpoint"] for s in api.list()["sandboxes"]}
    assert places[box] == marks[2] == places[copy["sandboxes"][0]["id"]]
    assert take(api, box)["parent"] == marks[2]
    assert api.ok("GET", f"/v1/checkpoints/{marks[2]}")["parent"] == marks[0]


def test_its_image_may_lose_its_name(fresh, tiny_tar):
    api = fresh.api
    api.import_image("short-lived", tiny_tar)
    box = api.create(image="short-lived")["id"]
    write(api, box, "kept")
    mark = take(api, box)["id"]
    api.delete(box)
    api.ok("DELETE", "/v1/images/short-lived")
    api.call("POST", "/v1/images/prune", {})
    fresh.kill()
    fresh.start()
    copy = api.ok("POST", f"/v1/checkpoints/{mark}/sandboxes", {})["id"]
    assert read(api, copy) == "kept"
    api.ok("POST", f"/v1/sandboxes/{copy}/restore", {"checkpoint": mark})
    assert read(api, copy) == "kept"
    api.delete(copy)
    api.ok("DELETE", f"/v1/checkpoints/{mark}")


@pytest.mark.timeout(DEADLINE * 12)  # btrfs gives blocks back in its own time
def test_what_is_freed_is_given_back(fresh):
    """Blocks count while somebody has them; the pool's file shrinks when nobody does."""
    api, pool = fresh.api, os.path.join(fresh.data, "pool.img")
    if not os.path.exists(pool):
        pytest.skip("the data directory is on btrfs itself")

    def held():
        return os.stat(pool).st_blocks * 512 >> 20
    before = held()
    box = api.create(image="tiny")["id"]
    api.out(box, ["sh", "-c", "dd if=/dev/urandom of=/root/x bs=1M count=100 2>/dev/null && sync"])
    mark = take(api, box)
    assert 100 << 20 <= mark["disk_bytes"] < 110 << 20
    api.delete(box)
    assert held() >= before + 80  # the checkpoint has them; other things may have gone
    api.ok("DELETE", f"/v1/checkpoints/{mark['id']}")
    until(lambda: held() < before + 50, "a smaller pool", 240)


def test_going_back_gives_no_room_away(api, make):
    """What it wrote before is there again, and counts."""
    box = make(image="tiny", disk_mb=64)["id"]

    def write_mb(name, mb):
        return api.exec(box, f"dd if=/dev/urandom of=/root/{name} bs=1M count={mb} 2>&1 && sync")["exit_code"]
    assert write_mb("first", 40) == 0
    for _ in range(2):
        mark = take(api, box)["id"]
        restore(api, box, mark)
        api.ok("DELETE", f"/v1/checkpoints/{mark}")
        assert write_mb("second", 40) != 0
        assert 40 << 20 <= api.usage(box)["disk_bytes"] <= 66 << 20
        api.out(box, "rm -f /root/second; sync")
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"disk_mb": 128})
    assert write_mb("second", 40) == 0
    api.out(box, "rm /root/*; sync")
    until(lambda: write_mb("third", 100) == 0, "room again")
    assert write_mb("fourth", 100) != 0


def test_a_copy_of_a_copy_holds_no_more_than_its_limit(api):
    """Each has what the one before wrote, which is gone by then and counted nowhere else."""
    box = api.create(image="tiny", disk_mb=64)["id"]
    for n in range(4):
        api.exec(box, f"dd if=/dev/urandom of=/root/{n} bs=1M count=30 2>&1; sync")
        mark = take(api, box)["id"]
        copy = api.ok("POST", f"/v1/checkpoints/{mark}/sandboxes", {})["id"]
        api.delete(box)
        api.ok("DELETE", f"/v1/checkpoints/{mark}")
        box = copy
    held = int(api.out(box, "du -sm /root | cut -f1"))
    assert 55 <= held <= 66, held
    assert 55 << 20 <= api.usage(box)["disk_bytes"] <= 68 << 20
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"disk_mb": 128})
    assert api.exec(box, "dd if=/dev/urandom of=/root/more bs=1M count=50 2>&1 && sync")["exit_code"] == 0
    assert api.exec(box, "dd if=/dev/urandom of=/root/yet bs=1M count=50 2>&1 && sync")["exit_code"] != 0
    api.delete(box)


def test_a_stopped_one_and_a_gone_one(api):
    box = api.create()["id"]
    write(api, box, "kept")
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    mark = take(api, box)
    api.delete(box)
    copy = api.ok("POST", f"/v1/checkpoints/{mark['id']}/sandboxes", {"name": "n" + uuid.uuid4().hex[:8]})
    try:
        assert read(api, copy["id"]) == "kept"
        assert copy["checkpoint"] == mark["id"]
    finally:
        api.delete(copy["id"])
        api.ok("DELETE", f"/v1/checkpoints/{mark['id']}")


def test_copies_that_go_their_own_ways(api):
    box = api.create(env={"WHO": "me"}, memory_mb=256)["id"]
    write(api, box, "same")
    forked = api.ok("POST", f"/v1/sandboxes/{box}/fork", {"count": 5})
    copies = [s["id"] for s in forked["sandboxes"]]
    try:
        assert len(set(copies)) == 5 and box not in copies
        for i, copy in enumerate(copies):
            assert read(api, copy) == "same"
            assert api.out(copy, ["sh", "-c", "echo $WHO"]).strip() == "me"
            write(api, copy, str(i))
        assert [read(api, copy) for copy in copies] == list("01234")
        assert read(api, box) == "same"
        assert all(s["memory_mb"] == 256 for s in forked["sandboxes"])
    finally:
        for copy in [*copies, box]:
            api.delete(copy)
        api.ok("DELETE", f"/v1/checkpoints/{forked['checkpoint']['id']}")
    api.refused(404, "sandbox_gone", "POST", f"/v1/sandboxes/{box}/fork", {"count": 1})


def test_what_runs_goes_on(api, box):
    n = api.start(box, ["sh", "-c", counting("/root/n", 0.01)])
    until(lambda: api.exec(box, ["cat", "/root/n"])["stdout"].strip().isdigit())
    take(api, box)
    before = int(api.out(box, ["cat", "/root/n"]) or 0)
    until(lambda: int(api.out(box, ["cat", "/root/n"]).strip() or 0) > before + 5)
    assert api.process(box, n["process"])["state"] == "running"


def test_nobody_elses(api, box):
    team = "t" + uuid.uuid4().hex[:8]
    api.ok("POST", "/v1/teams", {"name": team})
    other = api.with_key(api.ok("POST", "/v1/keys", {"team": team, "name": "other"})["key"])
    mark = take(api, box, name="mine")
    other.refused(404, "checkpoint_not_found", "GET", f"/v1/checkpoints/{mark['id']}")
    other.refused(404, "checkpoint_not_found", "DELETE", f"/v1/checkpoints/{mark['id']}")
    other.refused(404, "checkpoint_not_found", "POST", f"/v1/checkpoints/{mark['id']}/sandboxes", {})
    other.refused(404, "sandbox_not_found", "POST", f"/v1/sandboxes/{box}/fork", {})
    own = other.create()["id"]
    other.refused(404, "checkpoint_not_found", "POST", f"/v1/sandboxes/{own}/restore", {"checkpoint": mark["id"]})
    other.delete(own)
    assert other.ok("GET", "/v1/checkpoints")["checkpoints"] == []


def test_the_daemon_and_the_keeper_die(daemon, api, box):
    write(api, box, "one")
    mark = take(api, box)
    write(api, box, "two")
    daemon.kill()
    daemon.start()
    daemon.kill_keeper()
    until(lambda: api.call("GET", f"/v1/sandboxes/{box}/usage").status == 200)
    assert api.ok("GET", f"/v1/checkpoints/{mark['id']}")["sandbox"] == box
    restore(api, box, mark["id"])
    assert read(api, box) == "one"
