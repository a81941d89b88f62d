"""Control groups: a sandbox stays in the ones it was made in, however the daemon is started the next time."""
import pathlib

from harness import until


def groups(name):
    return [str(p) for p in pathlib.Path("/sys/fs/cgroup").glob(name)] + \
        [str(p) for p in pathlib.Path("/sys/fs/cgroup").glob(f"*/{name}")]


def start_as(daemon, name):
    daemon.stop()
    daemon.cgroup = name
    daemon.start()


def test_a_sandbox_is_handled_in_the_group_it_was_made_in(fresh):
    api, first = fresh.api, fresh.cgroup
    s = api.create(image="tiny", memory_mb=256)["id"]
    other = api.create(image="tiny")["id"]
    api.out(s, "head -c 20000000 /dev/zero > /dev/shm/x")
    start_as(fresh, first + "-b")
    assert api.usage(s)["memory_bytes"] > 20_000_000
    api.ok("PATCH", f"/v1/sandboxes/{s}", {"memory_mb": 64})
    told = api.exec(s, "head -c 200000000 /dev/zero | tail -c 150000000 > /dev/null")  # held in memory, given back
    assert told["exit_code"] != 0, told
    api.ok("POST", f"/v1/sandboxes/{s}/pause")
    api.ok("POST", f"/v1/sandboxes/{s}/resume")
    assert api.out(s, "echo here") == "here\n"
    fresh.kill_keeper()  # and once more, by a keeper that finds cells below both
    until(lambda: api.exec(other, "true")["exit_code"] == 0, "the next keeper")
    assert api.usage(other)["memory_bytes"] > 0
    new = api.create(image="tiny")["id"]
    for who in s, other, new:
        api.delete(who)
    until(lambda: not groups(first), "the former group's end")
    assert groups(first + "-b")
