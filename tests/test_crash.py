"""The crash rule: any of our processes may be killed at any moment, and nothing a user made is lost.

CRASH_ROUNDS says how often the random rounds kill (40 unless set; hundreds for a long run).
"""
import contextlib
import fcntl
import http.client
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import pytest

import harness
from harness import cells_in_cgroups, output_of, until

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "40"))


def test_sandboxes_and_commands_outlive_the_daemon(fresh):
    api = fresh.api
    who = api.create(image="tiny", name="survivor", metadata={"k": "v"}, env={"E": "1"})["id"]
    n = api.start(who, "i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done")["process"]
    until(lambda: api.process(who, n)["output_bytes"] > 20)
    before = api.get(who)
    fresh.kill()
    seen = before["id"]
    fresh.start()
    after = api.get("survivor")
    for member in ("id", "name", "metadata", "env", "created_at", "started_at", "state"):
        assert after[member] == before[member], member
    p = api.process(seen, n)
    assert p["state"] == "running"
    with api.output(who, n) as s:
        lines = b""
        while lines.count(b"\n") < 50:
            lines += output_of([s.until(type="stdout")])
    numbers = [int(x) for x in lines.split(b"\n")[:50]]
    assert numbers == list(range(numbers[0], numbers[0] + 50))  # nothing was lost in between
    api.signal(who, n, "KILL")
    assert api.wait(who, n)["signal"] == "SIGKILL"


def test_output_of_a_command_that_ended_meanwhile_is_there(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    n = api.start(who, "sleep 0.3; echo done; exit 9")["process"]
    fresh.kill()
    fresh.start()
    assert api.wait(who, n)["exit_code"] == 9
    with api.output(who, n) as s:
        assert output_of(list(s)) == b"done\n"


def test_the_keeper_comes_back(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    n = api.start(who, ["sleep", "600"])["process"]
    fresh.kill_keeper()
    assert api.out(who, ["echo", "no keeper needed"]) == "no keeper needed\n"

    def made():
        reply = api.call("POST", "/v1/sandboxes", {"image": "tiny"})
        assert reply.status in (201, 503), reply
        return reply.status == 201 and reply.json["id"]
    other = until(made, "the keeper to be back")
    assert api.out(other, ["echo", "x"]) == "x\n"
    assert api.process(who, n)["state"] == "running"
    api.delete(who)
    api.delete(other)
    until(lambda: not cells_in_cgroups([who, other]))


def test_the_keeper_comes_back_again_and_again(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    n = api.start(who, ["sleep", "600"])["process"]
    for _ in range(5):
        fresh.kill_keeper()
        other = until(lambda: (r := api.call("POST", "/v1/sandboxes", {"image": "tiny", "disk_mb": 99}))
                      .status == 201 and r.json["id"], "a keeper")
        assert api.out(other, ["echo", "x"]) == "x\n"
        api.delete(other)
    assert api.process(who, n)["state"] == "running"


def test_without_its_launcher_the_rest_goes_on_and_can_be_started_again(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    n = api.start(who, ["sleep", "600"])["process"]
    assert fresh.launcher()
    for pid in fresh.launcher():
        os.kill(pid, signal.SIGKILL)
    # Whether it ends or stays, a new start finds everything.
    fresh.restart()
    assert api.process(who, n)["state"] == "running"
    other = api.create(image="tiny")["id"]
    assert api.out(other, ["echo", "x"]) == "x\n"


def test_all_of_it_killed_at_once(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    n = api.start(who, "i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done")["process"]
    for seed in range(5):
        fresh.kill_everything(random.Random(seed).shuffle)
        fresh.start()
        assert api.process(who, n)["state"] == "running"
        other = api.create(image="tiny")["id"]
        assert api.out(other, ["echo", "x"]) == "x\n"


def test_an_init_that_dies_is_told_as_a_crash(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    api.out(who, "echo kept > /root/f")
    inits = [pid for pid in all_pids_of(who) if pid_inside(pid) == 1]
    assert inits
    os.kill(inits[0], signal.SIGKILL)
    assert api.wait_event("sandbox.stopped", who)["data"]["cause"] == "crashed"
    s = until(lambda: (s := api.get(who))["state"] == "stopped" and s)
    assert s["stop_cause"] == "crashed"
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    assert api.out(who, ["cat", "/root/f"]) == "kept\n"


def end_all(daemon, reboot):
    """End all sandboxes cleanly; with `reboot`, make it look to the next daemon like a restart of the host."""
    assert daemon.stop() == 0
    done = daemon.teardown()
    assert done.returncode == 0, done.stderr
    if reboot:
        (daemon.run / "ended").unlink()
        (daemon.data / "state" / "host-boot").write_text("00000000-0000-4000-8000-000000000000\n")
    daemon.start()


@pytest.mark.parametrize("reboot,cause", [(False, "shutdown"), (True, "host_reboot")])
def test_a_shutdown_and_a_restart_of_the_host_are_no_crashes(fresh, reboot, cause):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    api.out(who, "echo kept > /root/f")
    end_all(fresh, reboot)
    s = api.get(who)
    assert (s["state"], s["stop_cause"]) == ("stopped", cause)
    assert api.wait_event("sandbox.stopped", who)["data"]["cause"] == cause
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    assert api.out(who, ["cat", "/root/f"]) == "kept\n"
    fresh.restart()
    assert api.get(who)["state"] == "running"


@pytest.mark.parametrize("reboot", [False, True])
def test_sandboxes_with_restart_come_back_after_a_reboot(fresh, reboot):
    api = fresh.api
    made = {policy: api.create(image="tiny", restart=policy)["id"] for policy in ("no", "on-boot", "always")}
    stopped = api.create(image="tiny", restart="always")["id"]
    api.ok("POST", f"/v1/sandboxes/{stopped}/stop")
    api.out(made["on-boot"], "echo kept > /root/f")
    end_all(fresh, reboot)
    for policy in ("on-boot", "always"):
        until(lambda who=made[policy]: api.get(who)["state"] == "running", policy)
    assert api.out(made["on-boot"], ["cat", "/root/f"]) == "kept\n"
    assert api.get(made["no"])["state"] == "stopped"
    assert api.get(stopped)["state"] == "stopped"  # somebody asked for that


def test_a_crashed_sandbox_comes_back_only_with_restart_always(fresh):
    api = fresh.api
    always, boot = (api.create(image="tiny", restart=policy)["id"] for policy in ("always", "on-boot"))
    started = api.get(always)["started_at"]
    for who in (always, boot):
        os.kill(next(pid for pid in all_pids_of(who) if pid_inside(pid) == 1), signal.SIGKILL)
        assert api.wait_event("sandbox.stopped", who)["data"]["cause"] == "crashed"
    until(lambda: (s := api.get(always))["state"] == "running" and s["started_at"] != started, "a second life")
    assert api.out(always, ["echo", "back"]) == "back\n"
    s = api.ok("PATCH", f"/v1/sandboxes/{boot}", {"restart": "no"})
    assert (s["state"], s["stop_cause"], s["restart"]) == ("stopped", "crashed", "no")
    assert api.call("PATCH", f"/v1/sandboxes/{boot}", {"restart": "sometimes"}).status == 400


def all_pids_of(who):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if who in open(f"/proc/{name}/cgroup").read():
                    found.append(int(name))
    return found


def pid_inside(pid):
    with contextlib.suppress(OSError):
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("NSpid:"):
                return int(line.split()[-1])


def test_timers_go_on_after_a_restart(fresh):
    api = fresh.api
    passed = api.create(image="tiny", timeout_s=1)["id"]      # ends while the daemon is away
    later = api.create(image="tiny", timeout_s=3)["id"]       # ends after it is back
    far = api.create(image="tiny", timeout_s=500, on_timeout="stop")
    fresh.kill()
    time.sleep(1.2)  # the one wait for time itself: an end of life passes unseen
    fresh.start()
    for who in (passed, later):
        api.wait_event("sandbox.deleted", who)
        until(lambda: api.call("GET", f"/v1/sandboxes/{who}").code == "sandbox_gone")
        assert api.call("GET", f"/v1/sandboxes/{who}").json["error"]["cause"] == "timeout"
    after = api.get(far["id"])
    assert after["expires_at"] == far["expires_at"] and after["state"] == "running"
    api.delete(far["id"])


def test_stopped_sandboxes_are_found_again(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    api.out(who, "echo kept > /root/f")
    api.ok("POST", f"/v1/sandboxes/{who}/stop")
    fresh.kill()
    fresh.kill_keeper()
    fresh.start()
    assert api.get(who)["state"] == "stopped"
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    assert api.out(who, ["cat", "/root/f"]) == "kept\n"


class Load(threading.Thread):
    """Clients that go on whatever happens; they know only what the API confirmed to them."""

    def __init__(self, api, seed):
        super().__init__(daemon=True)
        self.api, self.random, self.stopping = api, random.Random(seed), threading.Event()
        self.alive, self.deleted, self.tried_names, self.bad = {}, set(), set(), []
        self.count = 0

    def attempt(self, method, path, body=None):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.api.call(method, path, body, timeout=30)

    def run(self):
        while not self.stopping.is_set():
            try:
                self.one()
            except Exception as e:  # pylint: disable=broad-except
                self.bad.append(repr(e))
                return

    def one(self):
        choice = self.random.random()
        if choice < 0.4 or not self.alive:
            name = f"n{self.ident}-{self.count}"
            self.count += 1
            self.tried_names.add(name)
            reply = self.attempt("POST", "/v1/sandboxes", {"image": "tiny", "name": name})
            if reply is not None:
                if reply.status == 201:
                    self.alive[reply.json["id"]] = name
                elif reply.status not in (503, 409, 500):
                    self.bad.append(repr(reply))
        elif choice < 0.8:
            who = self.random.choice(list(self.alive))
            reply = self.attempt("POST", f"/v1/sandboxes/{who}/exec", {"argv": ["echo", who]})
            if reply is not None and reply.status == 200:
                if reply.json["stdout"] != who + "\n":
                    self.bad.append(repr(reply))
            elif reply is not None and reply.status == 404:
                self.bad.append(f"lost {who}: {reply!r}")
        else:
            who = self.random.choice(list(self.alive))
            del self.alive[who]
            self.deleted.add(who)
            reply = self.attempt("DELETE", f"/v1/sandboxes/{who}")
            if reply is not None and reply.status not in (204, 404, 409, 503, 500):
                self.bad.append(repr(reply))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("victim", ["daemon", "keeper", "all"])
def test_killed_at_random_points(fresh, victim):
    """While clients create, exec and delete, kill; after each start all that was confirmed is there."""
    api = fresh.api
    seed = int(os.environ.get("CRASH_SEED", random.randrange(1 << 30)))
    print(f"CRASH_SEED={seed}")
    rng = random.Random(seed)
    anchor = api.create(image="tiny")["id"]
    n = api.start(anchor, "i=0; while :; do echo $i; i=$((i+1)); sleep 0.05; done")["process"]
    loads = [Load(api, seed + i) for i in range(3)]
    for load in loads:
        load.start()
    rounds = max(1, ROUNDS // 3)
    for _ in range(rounds):
        time.sleep(rng.uniform(0.0, 0.25))  # the random point
        if victim == "daemon":
            fresh.kill()
        elif victim == "keeper":
            fresh.kill_keeper(rng.shuffle)
        else:
            fresh.kill_everything(rng.shuffle)
        if victim == "keeper":
            fresh.wait_healthy()
        else:
            fresh.start()
        assert api.process(anchor, n)["state"] == "running", f"CRASH_SEED={seed}"
    for load in loads:
        load.stopping.set()
    for load in loads:
        load.join(60)
        assert not load.is_alive() and not load.bad, (load.bad, f"CRASH_SEED={seed}")

    # A delete that met a dead keeper is tried again until it is done.
    until(lambda: not api.list(state="creating,deleting", limit=1)["sandboxes"], "the cut deletes' end", 30)

    # What was confirmed runs and answers; what else is listed is whole as well.
    listed = {}
    cursor = None
    while True:
        page = api.list(limit=1000, **({"cursor": cursor} if cursor else {}))
        listed.update({s["id"]: s for s in page["sandboxes"]})
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert all(load.alive or load.deleted for load in loads), "no client got anything done"
    confirmed = {i for load in loads for i in load.alive} | {anchor}
    assert confirmed <= set(listed), f"lost {confirmed - set(listed)} CRASH_SEED={seed}"
    for who in listed:
        assert api.out(who, ["echo", who]) == who + "\n", f"CRASH_SEED={seed}"
    for who in list(listed):
        api.delete(who)

    # Nothing is left of any of them.
    gone = set(listed) | {i for load in loads for i in load.deleted}
    until(lambda: not cells_in_cgroups(gone), "the control groups' end", 20)
    until(lambda: not [i for i in os.listdir(fresh.run / "cells") if i in gone], "the run directories' end", 20)
    until(lambda: not any(all_pids_of(i) for i in list(gone)[:20]), "the processes' end", 20)
    assert api.list()["sandboxes"] == []


@pytest.mark.timeout(600)
def test_a_daemon_killed_while_it_starts(fresh):
    api = fresh.api
    who = api.create(image="tiny")["id"]
    n = api.start(who, ["sleep", "600"])["process"]
    rng = random.Random(7)
    for _ in range(10):
        fresh.kill()
        fresh.start(wait=False)
        time.sleep(rng.uniform(0, 0.05))
    fresh.kill()
    fresh.kill_keeper()
    fresh.start()
    assert api.process(who, n)["state"] == "running"


def test_a_keeper_that_waited_for_its_turn_does_not_begin_as_an_orphan(tmp_path):
    """Its launcher is killed while it waits for a former keeper to end: it would undo a teardown."""
    run, name = tmp_path / "run", f"wt-orphan-{os.getpid()}"
    run.mkdir()
    theirs, ours = os.pipe()
    with open(run / "keeper.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        keeper = subprocess.Popen(
            [harness.KEEPER_BUILD / "warren-keeper", "--data", tmp_path / "data", "--run", run,
             "--cgroup", name, "--parent-fd", str(theirs)], pass_fds=[theirs])
        os.close(ours)
        code = keeper.wait(harness.DEADLINE)
    os.close(theirs)
    assert code == 1
    assert not (tmp_path / "data/pool.img").exists()
    assert not [d for d in pathlib.Path("/sys/fs/cgroup").glob(f"**/{name}")]


@pytest.mark.timeout(600)
def test_an_image_import_cut_short_leaves_nothing(fresh, tiny_tar):
    """Half a body, then the daemon dies: no image of that name, and the next import works."""
    data = tiny_tar.read_bytes()
    for i in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", fresh.port, timeout=30)
        connection.putrequest("PUT", "/v1/images/cut")
        for k, v in fresh.api.headers({"Content-Length": str(len(data))}).items():
            connection.putheader(k, v)
        connection.endheaders()
        connection.send(data[: len(data) * (i + 1) // 4])
        if i == 1:
            fresh.kill_keeper()
        if i != 2:
            fresh.restart()
        connection.close()  # the third time only the client goes away
        assert "cut" not in [x["name"] for x in fresh.api.ok("GET", "/v1/images")["images"]]
    fresh.api.import_image("cut", tiny_tar)
    who = fresh.api.create(image="cut")["id"]
    assert fresh.api.out(who, ["echo", "x"]) == "x\n"


def test_another_user_of_the_daemon_has_all_that_the_former_had(tiny_tar):
    with harness.running("--user", "nobody", images={"tiny": tiny_tar}) as d:
        box = d.api.create(image="tiny", network={"rules": ["allow good.test"]})["id"]
        d.api.exec(box, ["nslookup", "bad.test"])
        denied = until(lambda: d.api.ok("GET", f"/v1/sandboxes/{box}/network/log")["entries"], "a denied name")
        d.api.out(box, "echo kept > /root/kept")
        d.stop()
        d.args[d.args.index("nobody")] = "daemon"
        d.start()
        assert {p.owner() for p in (d.data / "state").rglob("*")} == {"daemon"}
        assert {p.owner() for p in (d.data / "blobs").rglob("*")} == {"daemon"}
        assert d.api.out(box, "cat /root/kept") == "kept\n"
        assert d.api.ok("GET", f"/v1/sandboxes/{box}/network/log")["entries"][0]["name"] == denied[0]["name"]
