"""Load, lightly: the long runs are in bench/."""
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import cells_in_cgroups, mounts_of, until


@pytest.mark.timeout(300)
def test_a_loop_of_creates_execs_and_deletes_leaves_nothing(fresh):
    api = fresh.api
    api.delete(api.create(image="tiny")["id"])
    fds = len(os.listdir(f"/proc/{fresh.process.pid}/fd"))
    mounts = len(mounts_of(fresh))
    end = time.monotonic() + 10
    made, lock = [], threading.Lock()

    def worker(i):
        while time.monotonic() < end:
            who = api.create(image="tiny")["id"]
            with lock:
                made.append(who)
            assert api.out(who, ["echo", who]) == who + "\n"
            api.delete(who)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(worker, range(16)))
    assert len(made) > 20
    assert api.list(limit=1000)["sandboxes"] == []
    until(lambda: not cells_in_cgroups(made), "the control groups' end")
    until(lambda: len(mounts_of(fresh)) <= mounts, "the mounts' end")
    until(lambda: len(os.listdir(f"/proc/{fresh.process.pid}/fd")) <= fds + 20, "descriptors back")


@pytest.mark.timeout(300)
def test_a_hundred_at_once_each_answers(fresh):
    api = fresh.api
    with ThreadPoolExecutor(16) as pool:
        ids = [s["id"] for s in pool.map(lambda _: api.create(image="tiny"), range(100))]
        assert len(set(ids)) == 100
        assert list(pool.map(lambda i: api.out(i, ["hostname"]).strip(), ids)) == ids
        list(pool.map(api.delete, ids))
    until(lambda: not cells_in_cgroups(ids), "the control groups' end")


def test_races_on_one_sandbox_end_in_one_state(fresh):
    api = fresh.api
    for _ in range(5):
        who = api.create(image="tiny")["id"]
        with ThreadPoolExecutor(12) as pool:
            def poke(i):
                method, path, body = [
                    ("POST", "/stop", None), ("POST", "/start", None), ("DELETE", "", None),
                    ("POST", "/exec", {"argv": ["true"]}), ("PATCH", "", {"metadata": {"i": str(i)}}),
                    ("GET", "", None)][i % 6]
                return api.call(method, f"/v1/sandboxes/{who}{path}", body).status
            statuses = list(pool.map(poke, range(36)))
        assert not [s for s in statuses if s >= 500], statuses
        api.call("DELETE", f"/v1/sandboxes/{who}")
        until(lambda: api.call("GET", f"/v1/sandboxes/{who}").status == 404)
        until(lambda: not cells_in_cgroups([who]))


def test_many_streams_at_once(api, tiny):
    n = api.start(tiny, "read x; seq 1 20000", stdin=True)["process"]
    want = sum(len(f"{i}\n") for i in range(1, 20001))
    with ThreadPoolExecutor(20) as pool:
        def read(_):
            with api.output(tiny, n) as s:
                return sum(len(e.get("data", "")) for e in s)
        reads = [pool.submit(read, i) for i in range(20)]
        api.stdin(tiny, n, b"\n")
        assert {r.result() for r in reads} == {want}


def test_a_gigabyte_of_output_does_not_grow_the_daemon(api, daemon, make):
    who = make(image="tiny", memory_mb=64)["id"]

    def rss():
        return int(next(line for line in open(f"/proc/{daemon.process.pid}/status")
                        if line.startswith("VmRSS")).split()[1])
    before = rss()
    r = api.exec(who, "head -c 1000000000 /dev/zero", output_limit=1000, timeout=170)
    assert r["exit_code"] == 0 and r["truncated"]
    assert rss() - before < 64_000
