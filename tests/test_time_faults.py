"""Checkpoint, restore and fork when the disk is full, when it fails, and when somebody is killed: before or after,
never between; the old state is usable, and nothing is left behind."""
import contextlib
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import threading

import pytest

import harness
from harness import counting, until
from test_checkpoints import read, restore, take, write
from wire import enums

POOL_MB = 384


class SmallPool(harness.Daemon):
    """One whose storage is a small filesystem, made as the keeper makes small ones, which tests can fill."""

    def start(self, *args, **more):
        pool = self.data / "pool.img"
        if not pool.exists():
            self.data.mkdir(parents=True, mode=0o755)
            with open(pool, "wb") as f:
                f.truncate(POOL_MB << 20)
            subprocess.run(["mkfs.btrfs", "-q", "--mixed", pool], check=True, capture_output=True)
        super().start(*args, **more)


@pytest.fixture(scope="module")
def small(tiny_tar):
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("mkfs.btrfs is not here")
    d = SmallPool("--pool", "0")
    try:
        d.api.import_image("tiny", tiny_tar)
        yield d
    finally:
        if d.process.poll() is not None:
            d.start()
        d.close()


def tidy(daemon):
    """Nothing is there that nobody knows of."""
    api = daemon.api
    known = {c["id"] for c in api.ok("GET", "/v1/checkpoints?limit=1000")["checkpoints"]}
    boxes = {b["id"] for b in api.ok("GET", "/v1/sandboxes?limit=1000")["sandboxes"]}
    return daemon.stored("points") == known and daemon.stored("boxes") == boxes and not daemon.stored("trash")


@contextlib.contextmanager
def traced(pid, calls, inject, *more):
    """Something is done to a process at these calls."""
    if not shutil.which("strace"):
        pytest.skip("strace is not here")
    tracer = subprocess.Popen(["strace", *more, "-q", "-o", "/dev/null", "-e", f"trace={calls}", "-e",
                               f"inject={calls}:{inject}", "-p", str(pid)],
                              stderr=subprocess.PIPE)
    try:
        def attached():
            """To every thread: what another one starts would not be followed."""
            tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/status")
            with contextlib.suppress(OSError):  # one has just ended
                return not any(re.search(r"^TracerPid:\t0$", task.read_text(), re.M) for task in tasks)
        until(lambda: tracer.poll() is not None or attached(), "strace to attach")
        if tracer.poll() is not None:
            pytest.skip(f"strace: {tracer.stderr.read().decode()[:200]}")
        yield
    finally:
        tracer.terminate()
        tracer.wait()
        tracer.stderr.close()


def failing(pid, calls, error, when="1"):
    """The n-th of these calls of a process, and of each that it starts, fails."""
    return traced(pid, calls, f"error={error}:when={when}", "-f")


def dying(pid, call):
    """It is killed when it first makes that call."""
    return traced(pid, call, "signal=KILL:when=1")


@pytest.fixture
def box(small):
    api = small.api

    def made():
        """One that was full has room again when what was deleted is freed, a moment later."""
        reply = api.call("POST", "/v1/sandboxes", {"image": "tiny"})
        assert reply.status == 201 or reply.code == "no_space", reply
        return reply.status == 201 and reply.json["id"]
    b = until(made, "room for a sandbox", harness.DEADLINE * 3)
    write(api, b, "one")
    yield b
    for c in api.ok("GET", "/v1/checkpoints?limit=1000")["checkpoints"]:
        api.ok("DELETE", f"/v1/checkpoints/{c['id']}")
    for other in api.ok("GET", "/v1/sandboxes")["sandboxes"]:
        api.delete(other["id"])
    assert until(lambda: tidy(small))


def fill(daemon, box):
    """Not a block of the pool is free then; nor does what was removed before give any back later."""
    for what in ("filesystem", "subvolume"):  # the first has btrfs begin at once
        subprocess.run(["btrfs", what, "sync", daemon.pool()], check=True, capture_output=True, timeout=harness.DEADLINE * 4)
    full = daemon.api.exec(box, "dd if=/dev/urandom of=/root/fill bs=1M oflag=append conv=notrunc; sync; "
                                "dd if=/dev/urandom of=/root/fill bs=4k oflag=append conv=notrunc; sync",
                           timeout=harness.DEADLINE * 4)
    assert "No space left" in full["stderr"], full


# The calls of a checkpoint's process: the flush, then the snapshot itself.
@pytest.mark.parametrize("error,status,code", [("ENOSPC", 507, "no_space"), ("EIO", 500, "internal")])
def test_a_checkpoint_that_fails_leaves_nothing(small, box, error, status, code):
    api = small.api
    first = take(api, box)
    api.start(box, counting("/tmp/ticks", 0.1))
    until(lambda: api.exec(box, "cat /tmp/ticks")["exit_code"] == 0)
    for nth in "12":
        with failing(small.keeper(), "ioctl", error, nth):
            api.refused(status, code, "POST", f"/v1/sandboxes/{box}/checkpoints", {"name": "x"})
        seen = int(api.out(box, "cat /tmp/ticks"))
        assert until(lambda: int(api.out(box, "cat /tmp/ticks")) > seen)  # it does not stay frozen
        assert api.get(box)["checkpoint"] == first["id"]
    assert take(api, box, name="x")["parent"] == first["id"]
    assert until(lambda: tidy(small))


@pytest.mark.parametrize("call,nth", [("ioctl", "1"), ("ioctl", "2"), ("ioctl", "3"), ("renameat2", "1"), ("renameat2", "2")])
def test_a_restore_that_fails_leaves_the_old_files_or_has_the_new_ones(small, box, call, nth):
    api = small.api
    first = take(api, box)
    write(api, box, "two")
    for error in ("ENOSPC", "EIO"):
        with failing(small.keeper(), call, error, nth):
            reply = api.call("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": first["id"]})
        assert reply.status in (200, 500, 507), reply
        assert until(lambda: api.get(box)["state"] in ("running", "stopped"))
        if api.get(box)["state"] == "stopped":
            api.ok("POST", f"/v1/sandboxes/{box}/start")
        assert read(api, box) == ("one" if reply.status == 200 else "two")
        write(api, box, "two")
        assert until(lambda: tidy(small))


@pytest.mark.parametrize("error,status,code", [("ENOSPC", 507, "no_space"), ("EIO", 500, "internal")])
def test_a_fork_that_fails_makes_none(small, box, error, status, code):
    api = small.api
    for nth in "12":
        with failing(small.keeper(), "ioctl", error, nth):
            api.refused(status, code, "POST", f"/v1/sandboxes/{box}/fork", {"count": 3})
        assert [b["id"] for b in api.ok("GET", "/v1/sandboxes")["sandboxes"]] == [box]
        assert api.ok("GET", "/v1/checkpoints")["checkpoints"] == []
        assert read(api, box) == "one"
    assert until(lambda: tidy(small))


def test_a_full_database_takes_no_checkpoint(small, box):
    api = small.api
    with failing(small.process.pid, "pwrite64", "ENOSPC", "1+"):
        api.refused(507, "no_space", "POST", f"/v1/sandboxes/{box}/checkpoints", {})
    assert read(api, box) == "one"
    assert api.ok("GET", "/v1/checkpoints")["checkpoints"] == []
    assert take(api, box)["parent"] is None
    assert until(lambda: tidy(small))


@pytest.mark.timeout(harness.DEADLINE * 20)
def test_a_full_pool(small, box):
    api = small.api
    first = take(api, box)
    write(api, box, "two")
    n = api.start(box, "exec sleep 600")["process"]
    fill(small, box)
    outcomes = [api.call("POST", f"/v1/sandboxes/{box}/checkpoints", {}),
                api.call("POST", f"/v1/sandboxes/{box}/fork", {"count": 2}),
                api.call("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": first["id"]})]
    assert all(r.status in (200, 201) or r.code == "no_space" for r in outcomes), outcomes
    assert read(api, box) == ("one" if outcomes[2].status == 200 else "two")
    assert outcomes[2].status == 200 or api.process(box, n)["state"] == "running"  # nothing ended for nothing
    # What is there can be deleted although there is no room for anything.
    for c in api.ok("GET", "/v1/checkpoints")["checkpoints"]:
        if c["id"] != first["id"]:
            api.ok("DELETE", f"/v1/checkpoints/{c['id']}")
    for b in api.ok("GET", "/v1/sandboxes")["sandboxes"]:
        if b["id"] != box:
            api.delete(b["id"])
    api.exec(box, "rm -f /root/fill; sync")
    until(lambda: api.call("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": first["id"]}).status == 200, "room",
          harness.DEADLINE * 3)
    assert read(api, box) == "one"
    take(api, box)
    # btrfs gives the room back in its own time.
    until(lambda: api.exec(box, "head -c 50000000 /dev/zero > /root/x && rm /root/x")["exit_code"] == 0, "room", harness.DEADLINE * 3)


@pytest.mark.timeout(harness.DEADLINE * 20)
def test_no_room_for_memory_leaves_it_running(small, box):
    api = small.api
    n = api.start(box, "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done")["process"]
    pid = api.process(box, n)["pid"]

    def goes_on():
        seen = api.process(box, n)["output_bytes"]
        until(lambda: api.process(box, n)["output_bytes"] > seen, "more of its output")
        return api.process(box, n)["pid"] == pid

    def refused(what, body):
        """btrfs may have put an empty piece away just now: then there was room after all."""
        fill(small, box)
        reply = api.call("POST", f"/v1/sandboxes/{box}/{what}", body)
        if reply.status < 300:
            api.ok("POST", f"/v1/sandboxes/{box}/resume")
            for other in reply.json.get("sandboxes", []):
                api.delete(other["id"])
            for c in api.ok("GET", "/v1/checkpoints")["checkpoints"]:
                api.ok("DELETE", f"/v1/checkpoints/{c['id']}")
            return False
        assert (reply.status, reply.code) == (507, "no_space"), reply
        return True
    for what, body in (("checkpoints", {"memory": True}), ("pause", None), ("fork", {"memory": True, "count": 1})):
        until(lambda: refused(what, body), "no room", harness.DEADLINE * 4)
        assert api.get(box)["state"] == "running" and goes_on()
    api.exec(box, "rm -f /root/fill; sync")
    until(lambda: api.call("POST", f"/v1/sandboxes/{box}/pause").status == 200, "room", harness.DEADLINE * 3)
    assert goes_on()


# The keeper waits for the process that did the work when that is done, and only then answers.
@pytest.mark.parametrize("what,body", [("checkpoints", {}), ("checkpoints", {"memory": True}), ("pause", None)])
def test_what_was_done_when_the_keeper_died_is_done_again(small, box, what, body):
    api = small.api
    n = api.start(box, "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done")["process"]
    until(lambda: api.process(box, n)["output_bytes"] > 0)
    path = f"/v1/sandboxes/{box}/{what}"
    with dying(small.keeper(), "wait4"):
        reply = api.call("POST", path, body)
    if reply.status >= 400:  # a slow machine's next keeper came late
        assert reply.code in ("keeper_unavailable", "sandbox_busy"), reply
        until(lambda: api.call("POST", path, body).status < 300, "it to be done")
    seen = api.process(box, n)["output_bytes"]
    until(lambda: api.process(box, n)["output_bytes"] > seen, "more of its output")
    assert len(api.ok("GET", "/v1/checkpoints")["checkpoints"]) == (what == "checkpoints")
    if reply.status >= 400:
        small.restart()  # what nobody could be asked to remove goes then
    assert until(lambda: tidy(small))


def ask_keeper(daemon, op, flags, who, point):
    """A request of a daemon that is gone before it is done."""
    n = enums("keeper.h")
    version = int(re.search(r"KEEPER_VERSION (\d+)", (harness.ROOT / "src/wire/keeper.h").read_text())[1])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(str(daemon.run / "keeper.sock"))
        s.sendall(struct.pack("@III21s65s65sQQII21s21s256sII0Q", version, n[op], flags, who.encode(), b"", b"", 0, 0, 0,
                              0, b"", point.encode(), b"", 0, 0))


@pytest.mark.parametrize("flags", [0, 1, 3], ids=["files", "memory", "pause"])
def test_what_nobody_waits_for_is_not_kept(small, box, flags):
    """As when it takes longer than the daemon waits."""
    api, point = small.api, "nobody00000000000000"
    n = api.start(box, "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done")["process"]
    ask_keeper(small, "KEEPER_POINT_PUT", flags, box, point)
    path, body = f"/v1/sandboxes/{box}/checkpoints", {"memory": flags > 0}
    until(lambda: api.call("POST", path, body).status < 300, "the next one, after it")
    assert until(lambda: api.call("POST", f"/v1/sandboxes/{box}/exec", {"argv": ["true"]}).status == 200)
    seen = api.process(box, n)["output_bytes"]
    until(lambda: api.process(box, n)["output_bytes"] > seen, "more of its output")
    assert until(lambda: tidy(small))


def limits_of(who):
    """The limits as the kernel has them. In cgroup v2 they sit on the group `work` below the sandbox's own."""
    names = ("memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max", "cpu.cfs_quota_us")
    groups = [pathlib.Path(group) for group in harness.cells_in_cgroups([who])]
    holders = [work for group in groups for work in ([*group.glob("**/work")] or [group])]
    return {str(group / name): (group / name).read_text() for group in holders for name in names
            if (group / name).exists()}


@pytest.mark.parametrize("restart", [False, True], ids=["keeper", "both"])
def test_limits_hold_when_the_keeper_dies_in_the_last_step_of_a_resume(small, box, restart):
    api = small.api
    before = limits_of(box)
    assert before and not any(v.strip() == "max" for k, v in before.items() if "pids" in k)
    api.ok("POST", f"/v1/sandboxes/{box}/pause")
    victim = small.keeper()
    with dying(victim, "wait4"):
        asker = threading.Thread(target=ask, args=(api, f"/v1/sandboxes/{box}/resume", None))
        asker.start()
        until(lambda: victim not in small.keepers())
        if restart:
            small.kill()
        asker.join()
    if restart:
        small.start()
    until(lambda: api.call("POST", f"/v1/sandboxes/{box}/resume").status == 200)
    assert read(api, box) == "one"
    assert limits_of(box) == before


@contextlib.contextmanager
def damaged(daemon, checkpoint):
    """Its memory cannot be brought back: as on another kernel, or from a bad disk."""
    def rename(old, new):
        images = daemon.pool("memory", checkpoint)
        (images / old).rename(images / new)
    rename("files.img", "away")
    try:
        yield
    finally:
        rename("away", "files.img")


def test_processes_that_do_not_come_back_cost_nothing(small, box):
    api = small.api
    then = take(api, box, name="then", memory=True)
    write(api, box, "two")
    n = api.start(box, "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done")["process"]
    head = api.get(box)["checkpoint"]
    path, body = f"/v1/sandboxes/{box}/restore", {"checkpoint": "then"}
    with damaged(small, then["id"]):
        # One that is paused is so with all that it had.
        api.ok("POST", f"/v1/sandboxes/{box}/pause")
        api.refused(409, "cannot_restore", "POST", path, body)
        assert api.get(box)["state"] == "paused"
        seen = api.process(box, n)["output_bytes"]
        until(lambda: api.process(box, n)["output_bytes"] > seen, "more of its output")
        assert read(api, box) == "two"
        # One that runs is started anew, on the files that it had.
        api.refused(409, "cannot_restore", "POST", path, body)
        assert api.get(box)["state"] == "running"
        assert read(api, box) == "two" and api.get(box)["checkpoint"] == head
        api.ok("POST", f"/v1/sandboxes/{box}/stop")
        api.refused(409, "cannot_restore", "POST", path, body)
        assert api.get(box)["state"] == "stopped"
        small.restart()
        assert api.ok("POST", f"/v1/sandboxes/{box}/start")["checkpoint"] == head
        assert read(api, box) == "two"
    api.ok("POST", path, body)
    assert read(api, box) == "one"
    assert until(lambda: tidy(small))


def test_a_checkpoint_that_goes_while_it_is_restored(small, box):
    """Stopping what ran takes a moment, in which it is nobody's yet."""
    api = small.api
    then = take(api, box, memory=True)
    write(api, box, "two")
    n = api.start(box, "trap '' TERM; echo up; while :; do sleep 1; done")["process"]
    until(lambda: api.process(box, n)["output_bytes"] > 0)
    replies = []
    asker = threading.Thread(target=lambda: replies.append(
        api.call("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": then["id"]})))
    asker.start()
    until(lambda: api.get(box)["state"] != "running" or not asker.is_alive())
    gone = api.call("DELETE", f"/v1/checkpoints/{then['id']}")
    asker.join()
    assert (gone.status, replies[0].status) in ((204, 404), (409, 200), (204, 200)), (gone, replies)
    assert api.get(box)["state"] == "running"
    assert read(api, box) == ("one" if replies[0].status == 200 else "two")
    assert until(lambda: tidy(small))


@pytest.mark.parametrize("what", ["checkpoints", "restore", "fork"])
def test_somebody_is_killed_in_the_middle(small, box, what):
    """Of the daemon and the keeper, at moments that differ from round to round."""
    api = small.api
    first = take(api, box, name="first")
    write(api, box, "two")
    body = {"checkpoints": {}, "restore": {"checkpoint": "first"}, "fork": {"count": 2}}[what]
    dice = random.Random(what)
    for n in range(6):
        asker = threading.Thread(target=ask, args=(api, f"/v1/sandboxes/{box}/{what}", body))
        asker.start()
        asker.join(dice.uniform(0, 0.06))
        small.kill_keeper()
        if n % 2:
            small.kill()
            small.start()
        asker.join()
        until(lambda: api.call("GET", "/v1/health").status == 200)
        until(lambda: api.get(box)["state"] in ("running", "stopped"))
        if api.get(box)["state"] == "stopped":
            until(lambda: api.call("POST", f"/v1/sandboxes/{box}/start").status == 200)
        assert read(api, box) in (("two",) if what != "restore" else ("one", "two"))
        write(api, box, "two")
        for c in api.ok("GET", "/v1/checkpoints?limit=1000")["checkpoints"]:  # each of them is whole
            if c["id"] != first["id"]:
                api.ok("DELETE", f"/v1/checkpoints/{c['id']}")
        for b in api.ok("GET", "/v1/sandboxes")["sandboxes"]:
            if b["id"] != box:
                assert read(api, b["id"]) == "two"
                api.delete(b["id"])
    small.restart()
    assert until(lambda: tidy(small))
    restore(api, box, "first")
    assert read(api, box) == "one"


def ask(api, path, body):
    with contextlib.suppress(Exception):  # it may be cut at any place
        api.call("POST", path, body)
