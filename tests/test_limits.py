"""Limits: each holds, is told as what it was, and never takes the API to the sandbox away."""
import pytest

from harness import until

EAT = "python3 -c 'b = bytearray({} << 20); print(len(b))'"


def test_an_oom_kill_is_reported_as_one(api, make):
    who = make(memory_mb=64)["id"]
    r = api.exec(who, ["python3", "-c", "b = bytearray(500 << 20)"])
    assert (r["reason"], r["exit_code"], r["signal"]) == ("oom", 137, "SIGKILL")
    assert api.out(who, ["echo", "alive"]) == "alive\n"
    assert api.usage(who)["oom_kills"] >= 1
    api.wait_event("sandbox.oom", who)
    assert api.get(who)["state"] == "running"


def test_memory_in_shared_memory_counts(api, make):
    who = make(memory_mb=64)["id"]
    api.exec(who, "head -c 200M /dev/zero > /dev/shm/f")
    usage = api.usage(who)
    assert usage["memory_bytes"] <= 65 << 20 and usage["memory_peak_bytes"] > 32 << 20
    # What lies there is held: a command may find no room, and is told so. A restart gives it back.
    assert api.exec(who, ["echo", "alive"])["reason"] in ("exit", "oom")
    api.ok("POST", f"/v1/sandboxes/{who}/stop")
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    assert api.out(who, ["echo", "alive"]) == "alive\n"


def test_other_sandboxes_do_not_notice_an_oom(api, make):
    victim, other = make(memory_mb=32)["id"], make(memory_mb=256)["id"]
    n = api.start(other, ["sleep", "600"])["process"]
    for _ in range(3):
        assert api.exec(victim, ["python3", "-c", "b = bytearray(500 << 20)"])["reason"] == "oom"
    assert api.process(other, n)["state"] == "running"
    assert api.usage(other)["oom_kills"] == 0


def test_a_larger_limit_can_be_had_later(api, make):
    who = make(memory_mb=64)["id"]
    assert api.exec(who, EAT.format(150))["exit_code"] != 0
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"memory_mb": 512})
    assert api.out(who, EAT.format(150)).strip() == str(150 << 20)


BOMB = """
import os, time
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
        n += 1
except OSError as e:
    print(n, e.errno, flush=True)
time.sleep(1000)
"""


def test_a_fork_storm_ends_at_the_limit_and_the_api_stays(api, make):
    who = make(pids=32)["id"]
    n = api.start(who, ["python3", "-c", BOMB])["process"]
    with api.output(who, n) as s:
        count, errno = s.until(type="stdout")["data"].split()
    assert int(count) < 32 and errno == "11"
    # Full: a new command may be refused, but it is answered, and the storm can be ended.
    reply = api.call("POST", f"/v1/sandboxes/{who}/exec", {"argv": ["true"]})
    assert reply.status in (200, 400, 409, 429, 500, 503)
    assert len(api.ok("GET", f"/v1/sandboxes/{who}/processes?all=true")["processes"]) >= 20
    assert api.usage(who)["pids"] <= 33
    api.ok("DELETE", f"/v1/sandboxes/{who}/processes/{n}")
    until(lambda: api.call("POST", f"/v1/sandboxes/{who}/exec", {"argv": ["true"]}).status == 200)


def test_a_shell_bomb_is_bounded(api, make, tiny):
    who = make(pids=64, memory_mb=128)["id"]
    api.start(who, ["bash", "-c", "b() { b | b & }; b; while :; do b; done"])
    for _ in range(20):
        assert api.usage(who)["pids"] <= 65
        assert api.out(tiny, ["echo", "next door"]) == "next door\n"
    api.delete(who)


def test_the_disk_limit_is_hard(api, make):
    who = make(image="tiny", disk_mb=32)["id"]
    r = api.exec(who, "dd if=/dev/urandom of=/root/f bs=1M count=64 && sync")
    assert r["exit_code"] != 0, "64 MB went into 32"
    assert "No space" in r["stderr"] or "quota" in r["stderr"].lower()
    assert api.usage(who)["disk_bytes"] <= 34 << 20
    assert api.out(who, ["echo", "alive"]) == "alive\n"
    api.out(who, "rm /root/f; sync")
    until(lambda: api.exec(who, "dd if=/dev/urandom of=/root/g bs=1M count=8 2>/dev/null && sync")[
        "exit_code"] == 0, "room again")


def test_a_full_disk_next_door_is_not_felt(api, make):
    full, other = make(image="tiny", disk_mb=16)["id"], make(image="tiny", disk_mb=64)["id"]
    api.exec(full, "dd if=/dev/urandom of=/root/f bs=1M count=64")
    assert api.exec(full, "dd if=/dev/urandom of=/root/g bs=1M count=16 && sync")["exit_code"] != 0
    assert api.out(other, "dd if=/dev/urandom of=/root/f bs=1M count=16 2>/dev/null && sync && stat -c %s /root/f") == f"{16 << 20}\n"


def test_many_small_files_meet_the_limit_too(api, make):
    who = make(disk_mb=16, memory_mb=256)["id"]
    r = api.exec(who, ["python3", "-c", """
import os, sys
os.makedirs('/root/d')
for i in range(200000):
    try:
        with open(f'/root/d/{i}', 'wb') as f:
            f.write(b'x' * 3000)
    except OSError as e:
        print(e.errno); sys.exit(0)
sys.exit(1)
"""], timeout=150)
    assert r["exit_code"] == 0 and r["stdout"].strip() in ("28", "122"), r


def test_open_files_of_a_process(api, make):
    who = make(image="tiny", nofile=123)["id"]
    assert api.out(who, "ulimit -n; ulimit -Hn").split() == ["123", "123"]


SPIN = """
import time
a, c = time.monotonic(), time.process_time()
while time.monotonic() - a < 1.5:
    pass
print((time.process_time() - c) / (time.monotonic() - a))
"""


def test_cpu_is_held_to_its_share(api, make):
    who = make(cpus=0.2)["id"]
    share = float(api.out(who, ["python3", "-c", SPIN]))
    assert share < 0.4, f"used {share:.2f} of a cpu where 0.2 was given"


def test_cores_cannot_be_dumped(api, tiny):
    assert api.out(tiny, "ulimit -c; ulimit -Hc").split()[0] == "0"


@pytest.mark.parametrize("name", ["memory_mb", "disk_mb", "pids"])
def test_the_smallest_that_is_allowed_still_works(api, make, name):
    from test_errors import SMALLEST
    who = make(image="tiny", **{name: SMALLEST[name]})["id"]
    assert api.out(who, ["echo", "small"]) == "small\n"
