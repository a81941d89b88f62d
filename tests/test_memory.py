"""A sandbox's memory: what it holds goes on in the same place, in copies too, and what cannot is said."""
import contextlib
import json
import os
import pathlib
import signal
import socketserver
import threading

import pytest

import harness
from harness import output_of, until

HERE, PORT = harness.own_address(3), 4545  # on loopback while these tests run

# Of everything a program may hold open, one; and an answer for whoever asks how they are.
HOLDER = r"""
import ctypes, json, mmap, os, signal, socket, threading, time
gone = open("/tmp/gone", "w+"); gone.write("deleted"); gone.flush(); os.unlink("/tmp/gone")
far, near = os.pipe()
one, other = socket.socketpair()
kid = os.fork()
if kid == 0:
    while True:
        other.send(os.read(far, 100).upper())
server = socket.create_server(("127.0.0.1", 8123))
client = socket.create_connection(("127.0.0.1", 8123)); accepted, _ = server.accept()
six = socket.create_server(("::1", 8124), family=socket.AF_INET6)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); datagrams.bind(("127.0.0.1", 8125))
anonymous = mmap.mmap(-1, 4096); anonymous[:4] = b"anon"
with open("/dev/shm/kept", "w+b") as f:
    f.truncate(4096); shared = mmap.mmap(f.fileno(), 4096)
shared[:4] = b"shm!"
memory = os.fdopen(os.memfd_create("mine"), "w+b"); memory.write(b"memfd"); memory.flush()
locked = open("/tmp/locked", "w"); os.lockf(locked.fileno(), os.F_TLOCK, 0)
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(os.O_NONBLOCK); libc.inotify_add_watch(watch, b"/root", 0x100)
os.mkfifo("/tmp/fifo"); fifo = os.open("/tmp/fifo", os.O_RDWR)
rang = []
signal.signal(signal.SIGALRM, lambda *a: rang.append(time.monotonic()))
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
ticks = [0]
def tick():
    while True:
        ticks[0] += 1; time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
began = time.monotonic()
print("ready", os.getpid(), kid, flush=True)
while True:
    asker, _ = server.accept()
    os.write(near, b"hello")
    client.send(b"ping")
    datagrams.sendto(b"self", ("127.0.0.1", 8125))
    os.write(fifo, b"fifo")
    gone.seek(0); memory.seek(0)
    open("/root/made-%d" % ticks[0], "w").close()
    asker.send(json.dumps({
        "pid": os.getpid(), "kid": kid, "ticks": ticks[0], "rang": len(rang), "gone": gone.read(),
        "pipe": one.recv(9).decode(), "loopback": accepted.recv(9).decode(), "self": datagrams.recv(9).decode(),
        "anonymous": anonymous[:4].decode(), "shared": shared[:4].decode(), "memory": memory.read().decode(),
        "fifo": os.read(fifo, 9).decode(), "watch": os.read(watch, 4096)[16:20].decode(), "age": time.monotonic() - began}).encode())
    asker.close()
"""
SAME = {"gone": "deleted", "pipe": "HELLO", "loopback": "ping", "self": "self", "anonymous": "anon",
        "shared": "shm!", "memory": "memfd", "fifo": "fifo", "watch": "made"}
ASK = "import socket; s = socket.create_connection(('127.0.0.1', 8123)); print(s.recv(4096).decode())"

# Holds a connection to the outside and says what becomes of it.
CALLER = r"""
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", s.recv(100).decode().strip(), flush=True)
try:
    print("got", s.recv(100).decode().strip(), flush=True)
except OSError as e:
    print("error", type(e).__name__, flush=True)
"""


def ask(api, who):
    return json.loads(api.out(who, ["python3", "-c", ASK]))


def output(api, who, n):
    with api.output(who, n, follow=False) as s:
        return output_of(list(s)).decode()


def checkpoint(api, who, **more):
    return api.ok("POST", f"/v1/sandboxes/{who}/checkpoints", {"memory": True, **more})


@contextlib.contextmanager
def copies(api, who, count):
    made = api.ok("POST", f"/v1/sandboxes/{who}/fork", {"count": count, "memory": True})
    ids = [s["id"] for s in made["sandboxes"]]
    try:
        yield ids, made["checkpoint"]
    finally:
        for one in ids:
            api.delete(one)
        api.ok("DELETE", f"/v1/checkpoints/{made['checkpoint']['id']}")


@pytest.fixture(scope="module")
def holder(api):
    who = api.create_with("/root/holder.py", HOLDER)
    n = api.start(who, ["python3", "-u", "/root/holder.py"])["process"]
    until(lambda: "ready" in output(api, who, n))
    yield who, n
    api.delete(who)


def check_same(before, after):
    assert {k: after[k] for k in SAME} == SAME
    assert (after["pid"], after["kid"]) == (before["pid"], before["kid"])
    assert after["ticks"] > before["ticks"] and after["age"] > before["age"]


def test_all_that_a_program_holds_is_there_after_a_pause(api, holder):
    who, n = holder
    before = ask(api, who)
    for _ in range(2):  # what was brought back can be written down again
        assert api.ok("POST", f"/v1/sandboxes/{who}/pause")["state"] == "paused"
        assert api.ok("POST", f"/v1/sandboxes/{who}/resume")["state"] == "running"
        after = ask(api, who)
        check_same(before, after)
        before = after
    rang = before["rang"]
    until(lambda: ask(api, who)["rang"] > rang, "its timer")
    assert output(api, who, n).startswith("ready ")


def test_three_copies_diverge_and_the_source_goes_on(api, holder):
    who, n = holder
    api.out(who, ["sh", "-c", "echo 00112233445566778899aabbccddeeff > /etc/machine-id"])
    before = ask(api, who)
    with copies(api, who, 3) as (ids, made):
        assert made["memory"] is True and made["frozen_ms"] > 0
        for one in [who, *ids]:
            check_same(before, ask(api, one))
        api.signal(ids[0], n, "KILL", scope="tree")  # groups are its own: the tree, and nobody else's
        assert api.wait(ids[0], n)["signal"] in ("KILL", "SIGKILL", 9)
        assert api.exec(ids[0], ["pgrep", "-f", "holder.py"])["exit_code"] == 1
        for one in [who, *ids[1:]]:
            check_same(before, ask(api, one))
        ranges = [api.out(one, ["cat", "/proc/self/uid_map"]).split()[1] for one in [who, *ids]]
        assert len(set(ranges)) == 4
        assert len({api.out(one, ["hostname"]) for one in [who, *ids]}) == 4
        machines = {api.out(one, ["cat", "/etc/machine-id"]) for one in [who, *ids]}
        assert len(machines) == 4 and all(len(x) == 33 for x in machines)


@pytest.mark.parametrize("shell", ["sh", "bash"])  # the first opens /dev/tty, the second does not
def test_a_terminal_goes_on_here_and_in_a_copy(api, box, shell):
    n = api.start(box, [shell, "-i"], pty={"rows": 24, "cols": 80})["process"]

    def terminal(who):
        with api.output(who, n, follow=False) as s:
            return b"".join(harness.data_of(e) for e in s if "data" in e or "data_b64" in e)

    api.stdin(box, n, b"x=kept\n")
    with copies(api, box, 1) as (ids, _):
        assert api.ok("POST", f"/v1/sandboxes/{box}/pause")["state"] == "paused"
        assert api.ok("POST", f"/v1/sandboxes/{box}/resume")["state"] == "running"
        for who in [box, *ids]:
            api.stdin(who, n, b"echo got-$x; stty size; jobs\n")
            until(lambda: b"got-kept" in terminal(who) and b"24 80" in terminal(who), "its answer")
            assert api.process(who, n)["state"] == "running"


def test_whoever_reads_along_notices_nothing_of_a_checkpoint(api, box):
    n = api.start(box, ["python3", "-u", "-c",
                        "import time\nfor i in range(100000):\n print(i); time.sleep(0.005)"])["process"]
    with api.output(box, n) as s:
        seen = b""
        for _ in range(2):
            checkpoint(api, box)
            want = len(seen) + 200
            for event in s:
                seen += harness.data_of(event) if event["type"] == "stdout" else b""
                if len(seen) > want:
                    break
    numbers = [int(x) for x in seen.decode().rsplit("\n", 1)[0].split()]
    assert numbers == list(range(len(numbers)))
    for made in api.ok("GET", f"/v1/sandboxes/{box}/checkpoints")["checkpoints"]:
        api.ok("DELETE", f"/v1/checkpoints/{made['id']}")


def test_what_cannot_be_kept_is_named_and_the_sandbox_goes_on(api, box):
    held = api.start(box, ["python3", "-u", "-c",
                           "import ctypes, time\nl = ctypes.CDLL(None)\nfd = l.inotify_init()\n"
                           "assert l.inotify_add_watch(fd, b'/usr/share', 256) > 0\nprint('up')\n"
                           "n = 0\nwhile True:\n print(n); n += 1; time.sleep(0.01)"])
    until(lambda: "up" in output(api, box, held["process"]))
    for path in (f"/v1/sandboxes/{box}/checkpoints", f"/v1/sandboxes/{box}/pause"):
        text = api.refused(409, "cannot_dump", "POST", path, {"memory": True} if "check" in path else None)["message"]
        assert "python3" in text and str(held["pid"]) in text and "inotify" in text, text
        seen = api.process(box, held["process"])["output_bytes"]
        until(lambda: api.process(box, held["process"])["output_bytes"] > seen)
    api.signal(box, held["process"], "KILL")
    api.wait(box, held["process"])
    made = checkpoint(api, box)
    api.ok("DELETE", f"/v1/checkpoints/{made['id']}")


class Greeter(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"hello\n")
        self.server.held.append(self.request)
        self.server.leave.wait()


@pytest.fixture
def outside():
    with harness.own_addresses(HERE), socketserver.ThreadingTCPServer(
            (HERE, PORT), Greeter, bind_and_activate=False) as server:
        server.allow_reuse_address = server.daemon_threads = True
        server.held, server.leave = [], threading.Event()
        server.server_bind()
        server.server_activate()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.leave.set()
        server.shutdown()


@pytest.fixture
def reaching(outside):
    with harness.running("--egress-open", f"{HERE}/32") as d:
        yield d.api


def test_connections_to_the_outside_end_in_a_copy_and_stay_at_the_source(reaching, outside):
    api = reaching
    who = api.create_with("/root/caller.py", CALLER, network={"rules": [f"allow {HERE} {PORT}"]})
    try:
        n = api.start(who, ["python3", "-u", "/root/caller.py", HERE, str(PORT)])["process"]
        until(lambda: "connected hello" in output(api, who, n))
        with copies(api, who, 1) as (ids, _):
            api.wait(ids[0], n)
            assert "error Connection" in output(api, ids[0], n)
            m = api.start(ids[0], ["python3", "-u", "/root/caller.py", HERE, str(PORT)])["process"]
            until(lambda: "connected hello" in output(api, ids[0], m), "a copy's own way out")
            assert api.process(who, n)["state"] == "running"
            outside.held[0].sendall(b"still here\n")
            api.wait(who, n)
            assert "got still here" in output(api, who, n)
    finally:
        api.delete(who)


def criu_of(daemon):
    """Its CRIU, if one is at work: the child of a process of its keeper's."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = pathlib.Path("/proc", pid, "cmdline").read_bytes()
            if b"swrk" in words or b"--rpc" in words:  # the second is what it calls itself
                parent = pathlib.Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[1]
                if bytes(daemon.run) in pathlib.Path("/proc", parent, "cmdline").read_bytes():
                    return int(pid)
    return None


def kill_starter(daemon):
    """The process that starts CRIU, alone: its keeper follows it."""
    keeper, starter = daemon.keeper(), daemon.starter()
    os.kill(starter, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{keeper}"), "the keeper's end")


@pytest.mark.parametrize("kill", [harness.Daemon.kill_keeper, kill_starter], ids=["keeper", "starter"])
def test_a_kill_while_it_is_written_down_leaves_it_running(kill):
    with harness.running() as d:
        api = d.api
        who = api.create(memory_mb=1024)["id"]
        n = api.start(who, ["python3", "-u", "-c",
                            "import os, time\nx = os.urandom(1 << 20) * 200\nn = 0\n"
                            "while True:\n print(n); n += 1; time.sleep(0.01)"])["process"]
        until(lambda: api.process(who, n)["output_bytes"] > 10)
        for delay in (0.02, 0.08, 0.15):
            asked = threading.Thread(target=lambda: api.call("POST", f"/v1/sandboxes/{who}/checkpoints",
                                                             {"memory": True}))
            asked.start()
            until(lambda: criu_of(d) or not asked.is_alive(), "CRIU")  # which may come and go between two looks
            threading.Event().wait(delay)  # into one step or another
            kill(d)
            asked.join()
            until(lambda: api.call("GET", f"/v1/sandboxes/{who}").status == 200)
            assert api.get(who)["state"] == "running"
            path = f"/v1/sandboxes/{who}/processes/{n}"
            seen = until(lambda: api.call("GET", path).status == 200 and api.process(who, n), "its init")["output_bytes"]
            until(lambda: api.process(who, n)["output_bytes"] > seen, "it to go on")
            assert api.out(who, ["echo", "well"]) == "well\n"
        made = checkpoint(api, who)
        assert made["memory"] is True


def test_a_kill_of_criu_costs_one_checkpoint_at_most(daemon, api):
    """Where it has just changed a process's registers, that process is lost with it; never more than the sandbox's."""
    who = api.create()["id"]
    try:
        api.out(who, ["sh", "-c", "echo kept > /root/f; sync"])
        asked = threading.Thread(target=lambda: api.call("POST", f"/v1/sandboxes/{who}/checkpoints", {"memory": True}))
        asked.start()
        pid = until(lambda: criu_of(daemon) or not asked.is_alive(), "CRIU")
        if pid is not True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        asked.join()
        until(lambda: api.get(who)["state"] != "running"
              or api.call("POST", f"/v1/sandboxes/{who}/exec", {"argv": ["true"]}).status == 200, "an answer")
        if api.get(who)["state"] != "running":
            api.ok("POST", f"/v1/sandboxes/{who}/start")
        assert api.out(who, ["cat", "/root/f"]) == "kept\n"
    finally:
        api.delete(who)
