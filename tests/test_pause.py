"""Paused with its memory and resumed: the same processes, files and answers; nothing acknowledged is lost.

PAUSE_ROUNDS says how often the loops go round (10 unless set; `./dev soak` goes round 200 times).
"""
import http.client
import os
import pathlib
import random
import signal
import threading
import uuid

import pytest

import harness
from harness import output_of, until

ROUNDS = int(os.environ.get("PAUSE_ROUNDS", "10"))
KILLS = int(os.environ.get("PAUSE_KILLS", "6"))

# Appends a record, has it on disk, then says so: what it said must be there, whatever happens.
WRITER = """
import os, time
f = os.open("/root/log", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
i = 0
while True:
    os.write(f, b"%d\\n" % i)
    os.fsync(f)
    os.write(1, b"%d\\n" % i)
    i += 1
    time.sleep(0.002)
"""


def pause(api, who):
    made = api.ok("POST", f"/v1/sandboxes/{who}/pause")
    assert made["state"] == "paused"
    return made


def resume(api, who):
    made = api.ok("POST", f"/v1/sandboxes/{who}/resume")
    assert made["state"] == "running"
    return made


@pytest.fixture(scope="module", autouse=True)
def memory(api):
    who = api.create()["id"]
    reply = api.call("POST", f"/v1/sandboxes/{who}/pause")
    api.delete(who)
    if reply.status == 501:
        pytest.skip(reply.json["error"]["message"])
    assert reply.status == 200, reply


def writer(api, who):
    return api.start(who, ["python3", "-u", "-c", WRITER])["process"]


def acknowledged(api, who, n):
    with api.output(who, n, follow=False) as s:
        return [int(line) for line in output_of(list(s)).split()]


def check_log(api, who, n):
    """Every record that was acknowledged is in the file, in order, once."""
    api.signal(who, n, "KILL")
    api.wait(who, n)
    said = acknowledged(api, who, n)
    kept = [int(line) for line in api.out(who, ["cat", "/root/log"]).split()]
    assert kept == list(range(len(kept)))
    assert said and said[-1] < len(kept)
    return len(kept)


def test_commands_terminals_files_and_timers_go_on(api, box):
    api.out(box, ["sh", "-c", "echo first > /root/f"])
    reader = api.start(box, ["sh", "-c", "exec 3</root/f; read a; read b <&3; echo $a $b $$"], stdin=True)
    shell = api.start(box, ["bash", "--norc"], pty={"rows": 30, "cols": 90})
    timer = api.start(box, ["sh", "-c", "echo begun; sleep 2; echo over"])
    shared = api.start(box, ["python3", "-c", "import mmap, os, socket, time\n"
                             "a, b = socket.socketpair(); m = mmap.mmap(-1, 4096); m[0] = 7\n"
                             "pid = os.fork()\n"
                             "if pid == 0:\n m[1] = a.recv(1)[0]; os._exit(0)\n"
                             "print('up', flush=True); input(); b.send(b'x'); os.waitpid(pid, 0)\n"
                             "print(m[0], m[1])"], stdin=True)
    until(lambda: api.process(box, shared["process"])["output_bytes"] > 0)
    until(lambda: api.process(box, timer["process"])["output_bytes"] > 0)
    before = {p["process"]: p["pid"] for p in api.ok("GET", f"/v1/sandboxes/{box}/processes")["processes"]}
    paused = pause(api, box)
    assert paused["stop_cause"] == "stopped" and paused["stopped_at"]
    assert paused["id"] in [s["id"] for s in api.ok("GET", "/v1/sandboxes?state=paused")["sandboxes"]]
    assert pause(api, box)["id"] == paused["id"]  # once more is fine
    resume(api, box)
    after = {p["process"]: p["pid"] for p in api.ok("GET", f"/v1/sandboxes/{box}/processes")["processes"]}
    assert after == before
    api.stdin(box, reader["process"], b"typed\n")
    api.wait(box, reader["process"])
    with api.output(box, reader["process"]) as s:
        assert output_of(list(s)) == f"typed first {reader['pid']}\n".encode()
    api.stdin(box, shared["process"], b"go\n")
    assert api.wait(box, shared["process"])["exit_code"] == 0
    with api.output(box, shared["process"]) as s:
        assert output_of(list(s)) == b"up\n7 120\n"
    api.stdin(box, shell["process"], b"stty size; exit 4\n")
    assert api.wait(box, shell["process"])["exit_code"] == 4
    with api.output(box, shell["process"]) as s:
        assert b"30 90" in output_of(list(s))
    assert api.wait(box, timer["process"])["exit_code"] == 0
    with api.output(box, timer["process"]) as s:
        assert output_of(list(s)) == b"begun\nover\n"


SERVER = """
import socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); a, _ = s.accept()
c.send(b"before"); print("up", flush=True)
input()
c.send(b" and after"); got = b""
while len(got) < 16: got += a.recv(64)
print(got.decode(), socket.create_connection(s.getsockname()).getpeername() == s.getsockname())
"""


def test_connections_inside_go_on(api, box):
    n = api.start(box, ["python3", "-c", SERVER], stdin=True)["process"]
    until(lambda: api.process(box, n)["output_bytes"] > 0)
    pause(api, box)
    api.stdin(box, n, b"go\n")
    assert api.wait(box, n)["exit_code"] == 0
    with api.output(box, n) as s:
        assert output_of(list(s)) == b"up\nbefore and after True\n"


TRACED = """
import ctypes, os, time
read, write = os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.write(write, b"x")
    time.sleep(600)
os.read(read, 1)
print("up", flush=True)
input()
"""


def test_what_cannot_be_kept_is_named_and_goes_on(api, box):
    """A process that another one traces belongs to that one."""
    n = api.start(box, ["python3", "-c", TRACED], stdin=True)["process"]
    until(lambda: api.process(box, n)["output_bytes"] > 0)
    for path, body in (("pause", None), ("checkpoints", {"memory": True})):
        assert api.refused(409, "cannot_dump", "POST", f"/v1/sandboxes/{box}/{path}", body)["message"]
        assert api.get(box)["state"] == "running"
    assert api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"] == []
    api.stdin(box, n, b"go\n")
    api.wait(box, n)
    api.exec(box, ["pkill", "-9", "python3"])
    pause(api, box)


def test_whatever_needs_it_resumes_it(api, box):
    mark = api.start(box, ["sleep", "600"])
    since = api.ok("GET", "/v1/events?limit=1000")["events"][-1]["seq"]
    for touch in (lambda: api.out(box, ["echo", "here"]),
                  lambda: api.ok("GET", f"/v1/sandboxes/{box}/files/stat?path=/root"),
                  lambda: api.process(box, mark["process"])):
        pause(api, box)
        touch()
        assert api.get(box)["state"] == "running"
        assert api.process(box, mark["process"])["pid"] == mark["pid"]
    types = [e["type"] for e in api.events(since, sandbox=api.get(box)["id"])["events"] if e["type"] in ("sandbox.paused", "sandbox.resumed")]
    assert types == ["sandbox.paused", "sandbox.resumed"] * 3
    assert api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"] == []
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"wake": "never"})
    pause(api, box)
    error = api.refused(409, "sandbox_not_running", "POST", f"/v1/sandboxes/{box}/exec", {"argv": ["true"]})
    assert "warren resume" in error["message"]
    assert api.get(box)["state"] == "paused"


def test_stopping_or_a_cold_start_forgets_the_processes_and_keeps_the_files(api, box):
    for end in (f"/v1/sandboxes/{box}/stop", f"/v1/sandboxes/{box}/resume?memory=false"):
        api.out(box, ["sh", "-c", "echo kept > /root/f"])
        api.start(box, ["sleep", "600"])
        pause(api, box)
        api.ok("POST", end)
        api.ok("POST", f"/v1/sandboxes/{box}/start")
        assert api.ok("GET", f"/v1/sandboxes/{box}/processes")["processes"] == []
        assert api.out(box, ["cat", "/root/f"]) == "kept\n"
        assert api.out(box, ["sh", "-c", "pidof sleep || echo none"]) == "none\n"


def test_on_the_command_line(daemon, api, box):
    pid = api.start(box, ["sleep", "600"])["pid"]
    assert daemon.cli("pause", box).stdout == f"{box}\n"
    assert "paused" in daemon.cli("ls").stdout
    assert daemon.cli("resume", box).stdout == f"{box}\n"
    assert api.out(box, ["pidof", "sleep"]) == f"{pid}\n"
    assert daemon.cli("pause", box).returncode == 0
    assert daemon.cli("resume", "--cold", box).returncode == 0
    assert api.exec(box, ["pidof", "sleep"])["exit_code"] == 1


def test_copies_go_on_by_themselves_and_differ_where_they_must(api, box):
    count = api.start(box, ["python3", "-u", "-c", "import time\nfor i in range(10**6):\n print(i); time.sleep(0.01)"])
    until(lambda: api.process(box, count["process"])["output_bytes"] > 10)
    made = api.ok("POST", f"/v1/sandboxes/{box}/fork", {"count": 3, "memory": True})
    ids = [s["id"] for s in made["sandboxes"]]
    try:
        assert made["checkpoint"]["memory"] is True and made["checkpoint"]["memory_bytes"] > 0
        assert api.get(box)["state"] == "running"
        for who in [box, *ids]:
            p = api.process(who, count["process"])
            assert p["state"] == "running" and p["pid"] == count["pid"]
            seen = p["output_bytes"]
            until(lambda: api.process(who, count["process"])["output_bytes"] > seen)
        names = [api.out(who, ["hostname"]) for who in ids]
        assert names == [who + "\n" for who in ids]
        api.out(ids[0], ["sh", "-c", "echo only here > /root/mine"])
        assert api.exec(ids[1], ["cat", "/root/mine"])["exit_code"] == 1
        back = api.ok("POST", f"/v1/sandboxes/{ids[0]}/restore",
                      {"checkpoint": made["checkpoint"]["id"], "memory": True})
        assert back["state"] == "running" and api.exec(ids[0], ["cat", "/root/mine"])["exit_code"] == 1
        assert api.process(ids[0], count["process"])["pid"] == count["pid"]
    finally:
        for who in ids:
            api.delete(who)
        api.ok("DELETE", f"/v1/checkpoints/{made['checkpoint']['id']}")


HOARDER = "x = bytearray(300 << 20)\nx[::4096] = b'x' * len(x[::4096])\nprint(len(x), flush=True)\ninput()\nprint(x.count(b'x'))"


def test_no_limit_is_lost_by_lowering_it_while_it_is_paused(api, make):
    """What does not fit does not come back; it stays paused, and does when it may have enough again."""
    who = make(memory_mb=512)["id"]
    n = api.start(who, ["python3", "-c", HOARDER], stdin=True)["process"]
    until(lambda: api.process(who, n)["output_bytes"] > 0)
    pause(api, who)
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"memory_mb": 128, "pids": 77})
    reply = api.call("POST", f"/v1/sandboxes/{who}/resume")
    if reply.status == 200:  # v2 of control groups ends what is too much
        assert api.usage(who)["memory_bytes"] <= 128 << 20
        return
    assert reply.code == "limit_below_use" and api.get(who)["state"] == "paused", reply
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"memory_mb": 512})
    resume(api, who)
    api.stdin(who, n, b"go\n")
    assert api.wait(who, n)["exit_code"] == 0
    with api.output(who, n) as s:
        assert output_of(list(s)) == f"{300 << 20}\n{75 << 10}\n".encode()
    limits = {p.name: p.read_text().strip() for g in harness.cells_in_cgroups([who])
              for p in pathlib.Path(g).glob("*")
              if pathlib.Path(g).name == who and p.name in ("pids.max", "memory.limit_in_bytes")}
    assert limits["pids.max"] == "77" and limits["memory.limit_in_bytes"] == str(512 << 20), limits


BOOT = "/proc/sys/kernel/random/boot_id"


def test_each_has_a_boot_id_of_its_own(api, box):
    """As if each were a machine: the same while it runs and after a pause, another after a start, others in copies."""
    def boot(who):
        text = api.out(who, ["cat", BOOT])
        assert uuid.UUID(text.strip()).version == 4 and len(text) == 37, text
        return text
    first = boot(box)
    other = api.create()["id"]
    assert boot(other) not in (first, open(BOOT).read())
    api.delete(other)
    pause(api, box)
    resume(api, box)
    assert boot(box) == first
    pause(api, box)  # what was brought back can be written down again
    assert boot(box) == first
    made = api.ok("POST", f"/v1/sandboxes/{box}/fork", {"count": 2, "memory": True})
    ids = [s["id"] for s in made["sandboxes"]]
    try:
        boots = {boot(who) for who in [box, *ids]}
        assert len(boots) == 3 and first in boots
        pause(api, ids[0])
        resume(api, ids[0])
        assert boot(ids[0]) in boots - {first}
        api.ok("POST", f"/v1/sandboxes/{box}/restore", {"checkpoint": made["checkpoint"]["id"], "memory": True})
        assert boot(box) == first
        for who in (box, ids[0]):
            assert api.exec(who, ["sh", "-c", f"echo x > {BOOT} || rm {BOOT} || umount {BOOT} || chmod 666 {BOOT}"])["exit_code"] != 0
            assert boot(who) in boots
    finally:
        for who in ids:
            api.delete(who)
        api.ok("DELETE", f"/v1/checkpoints/{made['checkpoint']['id']}")
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    api.ok("POST", f"/v1/sandboxes/{box}/start")
    assert boot(box) not in boots


def test_a_loop_of_pauses_loses_nothing_that_was_acknowledged(api, box):
    n = writer(api, box)
    pid = api.process(box, n)["pid"]
    for _ in range(ROUNDS):
        seen = api.process(box, n)["output_bytes"]
        until(lambda: api.process(box, n)["output_bytes"] > seen)
        pause(api, box)
        resume(api, box)
    assert api.process(box, n)["pid"] == pid
    assert check_log(api, box, n) > ROUNDS


@pytest.fixture(scope="module")
def mortal():
    with harness.running() as d:
        yield d


@pytest.mark.parametrize("whom", ["daemon", "keeper"])
def test_kills_in_the_midst_leave_it_running_or_paused(mortal, whom):
    api = mortal.api
    dice = random.Random(7)
    who = api.create()["id"]
    n = writer(api, who)
    stop = threading.Event()

    def round_and_round():
        while not stop.is_set():
            for step in ("pause", "resume"):
                try:
                    api.call("POST", f"/v1/sandboxes/{who}/{step}")
                except (OSError, http.client.HTTPException):
                    stop.wait(0.01)  # nobody is there
    thread = threading.Thread(target=round_and_round)
    thread.start()
    try:
        for _ in range(KILLS):
            stop.wait(dice.uniform(0.05, 0.6))
            if whom == "keeper":
                mortal.kill_keeper()
            else:
                mortal.kill(signal.SIGKILL)
                mortal.start()
            until(lambda: api.call("GET", f"/v1/sandboxes/{who}").status == 200, "an answer")
            assert api.get(who)["state"] in ("running", "pausing", "paused")
    finally:
        stop.set()
        thread.join()
    until(lambda: api.call("POST", f"/v1/sandboxes/{who}/resume").status == 200, "it to go on")
    seen = api.process(who, n)["output_bytes"]
    until(lambda: api.process(who, n)["output_bytes"] > seen, "the writer to go on")
    check_log(api, who, n)


def test_a_volume_is_there_again_for_who_has_a_file_of_it_open(api):
    volume = api.ok("POST", "/v1/volumes", {"name": "paused-with", "size_mb": 64})["id"]
    box = api.create(volumes=[{"volume": volume, "path": "/data"}])["id"]
    try:
        n = api.start(box, "exec 3>>/data/log; i=0; while :; do i=$((i+1)); echo $i >&3; sleep 0.05; done")["process"]
        until(lambda: api.call("GET", f"/v1/volumes/{volume}/files/stat?path=/log").status == 200, "the first line")
        pause(api, box)
        resume(api, box)
        seen = int(api.out(box, ["tail", "-n1", "/data/log"]))
        until(lambda: int(api.out(box, ["tail", "-n1", "/data/log"])) > seen, "more lines")
        assert api.process(box, n)["state"] == "running"
        lines = api.out(box, ["cat", "/data/log"]).split()
        assert lines == [str(i + 1) for i in range(len(lines))]
    finally:
        api.delete(box)
        api.call("DELETE", f"/v1/volumes/{volume}")
