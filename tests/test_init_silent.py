"""An init that answers nothing holds up nobody: every request to its sandbox ends, a delete within ten seconds, and
neighbours notice nothing."""
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import time

import pytest

from harness import until
from test_init_reach import busy_s, init_of
from test_isolation import host_pids

DELETE_S = 10  # what is promised
ANSWER_S = 20  # a checkpoint, a pause, an exec: init gets ten seconds to answer, and the machine is busy
READS = 24


def timed(fn, *args, **kw):
    began = time.monotonic()
    return fn(*args, **kw), time.monotonic() - began


def latency(api, who, n):
    """The median time of n execs."""
    return statistics.median(timed(api.exec, who, ["true"])[1] for _ in range(n))


@contextlib.contextmanager
def silenced(who):
    """Stop a sandbox's init with a signal, by a means that nobody inside has."""
    pid = init_of(who)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_silent_init_holds_up_nobody(api, daemon, make):
    who, neighbour = make(image="tiny")["id"], make(image="tiny")["id"]
    keeper = daemon.keeper()
    alone = latency(api, neighbour, 21)
    with silenced(who), concurrent.futures.ThreadPoolExecutor(READS) as pool:
        reads = [pool.submit(api.call, "GET", f"/v1/sandboxes/{who}/files?path=/etc/passwd", timeout=120)
                 for _ in range(READS)]
        for method, path, body in (("POST", "checkpoints", {"memory": True}), ("POST", "pause", {}),
                                   ("POST", "exec", {"argv": ["true"]})):
            reply, took = timed(api.call, method, f"/v1/sandboxes/{who}/{path}", body)
            assert reply.status >= 400 and took < ANSWER_S, (path, reply, took)
        assert api.get(who)["state"] == "running"
        assert latency(api, neighbour, 21) < 5 * alone + 0.05
        reply, took = timed(api.call, "DELETE", f"/v1/sandboxes/{who}")
        assert reply.status < 300 and took < DELETE_S, (reply, took)
        for read in reads:
            assert read.result(timeout=DELETE_S).status >= 400
    assert daemon.keeper() == keeper


def test_a_delete_does_not_wait_for_a_checkpoint(api, daemon, make):
    keeper = daemon.keeper()
    for body, path in (({"memory": True}, "checkpoints"), ({}, "pause")):
        who = make(image="tiny")["id"]
        api.start(who, ["sleep", "600"])
        with silenced(who), concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(api.call, "POST", f"/v1/sandboxes/{who}/{path}", body)
            until(asked.running, "it to begin")
            time.sleep(0.5)  # well into the ten seconds that init is given
            reply, took = timed(api.call, "DELETE", f"/v1/sandboxes/{who}")
            assert reply.status < 300 and took < DELETE_S, (path, reply, took)
            assert asked.result(timeout=DELETE_S).status >= 400
        assert api.call("GET", f"/v1/sandboxes/{who}").status in (404, 410)
    assert daemon.keeper() == keeper


STOPPER = r"""
import os, signal, time
while True:
    time.sleep(0.001)
    for name in os.listdir('/proc'):
        if name.isdigit() and int(name) > 1:
            try:
                if open(f'/proc/{name}/comm').read().startswith('warren-'):
                    os.kill(int(name), signal.SIGSTOP)
            except OSError:
                pass
"""


def stopped(who):
    n = 0
    for pid in host_pids(who):
        with contextlib.suppress(OSError):
            n += pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    return n


def test_file_workers_that_are_stopped_hold_up_nobody(api, daemon, make):
    """Root inside may stop the workers of file operations: only its own requests suffer."""
    who, neighbour = make()["id"], make(image="tiny")["id"]
    alone = latency(api, neighbour, 21)
    api.out(who, "head -c 64000000 /dev/zero > /root/large")
    api.start(who, ["python3", "-c", STOPPER])
    with concurrent.futures.ThreadPoolExecutor(READS) as pool:
        def read():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return api.call("GET", f"/v1/sandboxes/{who}/files?path=/root/large", timeout=120)
        reads = [pool.submit(read) for _ in range(READS)]
        until(lambda: stopped(who) and stopped(who) + sum(r.done() for r in reads) >= READS, "workers that are stopped")
        assert latency(api, neighbour, 21) < 5 * alone + 0.05
        reply, took = timed(api.call, "DELETE", f"/v1/sandboxes/{who}")
        assert reply.status < 300 and took < DELETE_S, (reply, took)
        for each in reads:
            each.result(timeout=DELETE_S)


def limit_descriptors(pid, n):
    """The soft limit of a cell's process, set by root of its own user namespace: the host's may lack the right."""
    subprocess.run(["nsenter", "--target", str(pid), "--user", "prlimit", "--pid", str(pid),
                    f"--nofile={n}:"], check=True)


def test_an_init_without_descriptors_says_so_and_does_not_spin(api, daemon, make):
    who = make(image="tiny")["id"]
    pid = init_of(who)
    whole = int(re.search(r"Max open files +(\d+)", pathlib.Path(f"/proc/{pid}/limits").read_text())[1])
    most = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1
    limit_descriptors(pid, most)
    try:
        # A number in between may still be free, for one; whoever comes while it is taken is told.
        with contextlib.ExitStack() as stack:
            refused = None
            while not refused:
                connection = stack.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
                connection.settimeout(ANSWER_S)
                connection.connect(str(daemon.run / "cells" / who / "init.sock"))
                refused = api.call("POST", f"/v1/sandboxes/{who}/exec", {"argv": ["true"]})
                refused = refused if refused.status >= 400 else None
            assert refused.code == "sandbox_busy", refused
        limit_descriptors(pid, 0)
        before = busy_s(pid)
        reply, took = timed(api.call, "POST", f"/v1/sandboxes/{who}/exec", {"argv": ["true"]})
        assert reply.status >= 400 and took < ANSWER_S, (reply, took)
        assert busy_s(pid) - before < 0.3
    finally:
        limit_descriptors(pid, whole)
    assert api.out(who, ["echo", "alive"]) == "alive\n"


@pytest.mark.parametrize("path, body", [("checkpoints", {"memory": True}), ("pause", {})])
def test_a_delete_does_not_wait_for_criu(api, daemon, make, path, body):
    """A CRIU that does not go on holds every process of the sandbox."""
    who, keeper = make(image="tiny")["id"], daemon.keeper()
    api.start(who, ["sleep", "600"])
    note = daemon.run / "cells" / who / "parked"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for _ in range(20):  # it may be through before it is seen
            asked = pool.submit(api.call, "POST", f"/v1/sandboxes/{who}/{path}", body)
            until(lambda: note.exists() or asked.done(), "a note that it is parked")
            with contextlib.suppress(OSError, IndexError, ValueError):
                criu = int(note.read_text().split()[1])
                os.kill(criu, signal.SIGSTOP)
                if not asked.done():
                    break
            if asked.result().status < 300 and path == "pause":
                api.ok("POST", f"/v1/sandboxes/{who}/resume")
        reply, took = timed(api.call, "DELETE", f"/v1/sandboxes/{who}")
        assert reply.status < 300 and took < DELETE_S, (reply, took)
        assert asked.result(timeout=DELETE_S).status >= 400
    assert daemon.keeper() == keeper
    until(lambda: not pathlib.Path(f"/proc/{criu}").exists(), "the end of CRIU")
    assert not note.parent.exists()


def children(pid, program):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            stat = (entry / "stat").read_text()
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid and f"({program})" in stat:
                found.append(int(entry.name))
    return found


def test_a_delete_does_not_wait_for_a_commit(api, daemon, make):
    who, keeper = make(image="tiny")["id"], daemon.keeper()
    api.out(who, "head -c 40000000 /dev/urandom > /root/large")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(api.call, "POST", f"/v1/sandboxes/{who}/commit", {"name": "never"})
        reader = until(lambda: children(keeper, "warren-unpack"), "the commit's reader")[0]
        os.kill(reader, signal.SIGSTOP)
        assert not asked.done()
        reply, took = timed(api.call, "DELETE", f"/v1/sandboxes/{who}")
        assert reply.status < 300 and took < DELETE_S, (reply, took)
        assert asked.result(timeout=DELETE_S).status >= 400
    assert daemon.keeper() == keeper
