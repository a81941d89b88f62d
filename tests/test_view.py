"""A sandbox sees nothing of what the host and its neighbours do."""
import json
import math
import os
import subprocess
import time

import pytest

from harness import DEADLINE, until

# Every file of /proc and /sys that is not about a process of the sandbox's own, and what it says.
WALK = r"""
import json, os
seen = {}
def look(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        seen[path] = os.read(fd, 65536).decode('latin1')
    except OSError:
        pass
    os.close(fd)
for top in ('/proc', '/sys', '/proc/self/net'):
    for base, dirs, files in os.walk(top):
        if base == '/proc':
            dirs[:] = [d for d in dirs if not d.isdigit() and d not in ('self', 'thread-self')]
        for name in files:
            if not os.path.islink(os.path.join(base, name)):
                look(os.path.join(base, name))
with open('/tmp/seen', 'w') as f:
    json.dump(seen, f)
"""

# Files that may change between two looks, and why.
CHANGING = {
    "/proc/uptime": "the sandbox's own; its second number is the host's idle time",
    "/proc/meminfo": "the sandbox's own use",
    "/sys/fs/cgroup/memory.current": "likewise",
    "/proc/crypto": "the reference counts of ciphers",
    "/proc/locks": "those of the sandbox's own processes",
    "/proc/sys/kernel/ns_last_pid": "the sandbox's own",
    "/proc/sys/kernel/random/uuid": "another one at each look",
    "/proc/sys/kernel/hung_task_detect_count": "tasks that hung",
}


def walk(api, who):
    r = api.exec(who, ["python3", "-c", WALK], timeout=DEADLINE * 2)
    assert r["exit_code"] == 0, r
    return json.loads(api.out(who, ["cat", "/tmp/seen"]))


@pytest.fixture
def busy_host(tmp_path, api, make):
    """A loop device, processes, sockets, groups and forks on the host, and a neighbour that works."""
    backing = tmp_path / "neighbours-secret-disk"
    with open(backing, "wb") as f:
        f.truncate(1 << 20)
    loop = subprocess.run(["losetup", "--find", "--show", backing], check=True, capture_output=True, text=True).stdout.strip()
    work = subprocess.Popen(["/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); /bin/true; done; exec sleep 600"])
    neighbour = make(image="tiny")["id"]
    api.exec(neighbour, "i=0; while [ $i -lt 200 ]; do i=$((i+1)); /bin/true; done; echo x > /tmp/f; sync")
    yield backing.name
    work.kill()
    work.wait()
    subprocess.run(["losetup", "--detach", loop], check=True)


def test_nothing_inside_moves_with_what_the_host_does(api, make, busy_host):
    who = make()["id"]
    before = walk(api, who)
    assert len(before) > 500
    other = make(image="tiny")["id"]
    api.exec(other, "i=0; while [ $i -lt 200 ]; do i=$((i+1)); /bin/true; done")
    with open("/dev/ptmx", "rb"), open("/proc/self/stat"):
        subprocess.run("i=0; while [ $i -lt 100 ]; do i=$((i+1)); /bin/true; done", shell=True, check=True)
        after = walk(api, who)
    moved = {path for path in before.keys() | after.keys()
             if before.get(path) != after.get(path) and not path.startswith("/proc/self/net/")
             and path not in CHANGING}
    assert not moved, {path: (before.get(path), after.get(path)) for path in sorted(moved)[:5]}
    told = [path for path, text in after.items() if busy_host in text]
    assert not told
    cmdline = open("/proc/cmdline").read().strip()
    if len(cmdline) > 20:
        assert not [path for path, text in after.items() if cmdline in text]


@pytest.mark.parametrize("path,text", [
    ("/proc/loadavg", "0.00 0.00 0.00 1/1 1\n"), ("/proc/cmdline", "ro\n"), ("/proc/diskstats", ""),
    ("/proc/partitions", "major minor  #blocks  name\n\n"), ("/proc/sys/kernel/pty/nr", "0\n"),
    ("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")])
def test_a_file_that_counts_for_the_machine_has_a_stand_in(api, tiny, path, text):
    assert api.out(tiny, ["cat", path]) == text


def test_the_hosts_counters_are_zero(api, tiny):
    vmstat = dict(line.split() for line in api.out(tiny, ["cat", "/proc/vmstat"]).splitlines())
    assert set(vmstat.values()) == {"0"}
    assert vmstat.keys() >= {"pgpgin", "pgpgout", "pswpin", "pswpout", "pgfault"}
    stat = [line.split() for line in api.out(tiny, ["cat", "/proc/stat"]).splitlines()]
    assert [line[0] for line in stat if line[0].startswith("cpu")] == ["cpu", "cpu0"]
    assert not any(int(n) for line in stat if line[0].startswith("cpu") for n in line[1:])
    used, free, most = api.out(tiny, ["cat", "/proc/sys/fs/file-nr"]).split()
    assert (used, free) == ("0", "0") and int(most) > 0
    groups = [line.split() for line in api.out(tiny, ["cat", "/proc/cgroups"]).splitlines()[1:]]
    assert {line[2] for line in groups} == {"1"}


def test_no_disk_of_the_hosts_is_listed(api, tiny, busy_host):
    for path in ("/sys/block", "/sys/bus", "/sys/dev", "/proc/fs", "/proc/bus", "/proc/irq"):
        assert api.out(tiny, ["ls", "-A", path]) == "", path
    assert api.out(tiny, ["ls", "-A", "/sys/class"]).split() == ["net"]
    assert api.out(tiny, ["ls", "-A", "/sys/class/net"]).split() == ["lo"]
    assert api.out(tiny, ["cat", "/sys/class/net/lo/mtu"]) == "65536\n"
    assert api.out(tiny, ["ls", "-A", "/sys/devices/virtual"]).split() == ["net"]
    assert sorted(api.out(tiny, ["ls", "-A", "/sys/devices/system"]).split()) == ["cpu", "node"]


@pytest.mark.parametrize("name", ["sockstat", "softnet_stat", "protocols"])
def test_the_machines_sockets_cannot_be_counted(api, tiny, name):
    path = f"/proc/self/net/{name}"
    r = api.exec(tiny, f"chmod 444 {path}; chown 0 {path}; cat {path} /proc/net/{name} /proc/1/net/{name}")
    assert r["stdout"] == "" and "denied" in r["stderr"].lower(), r


def test_how_much_others_keep_in_shared_files_cannot_be_seen(api, make):
    who = make()["id"]
    code = ("import os; print([(s.f_blocks, s.f_bfree, s.f_files, s.f_ffree) for s in "
            "map(os.statvfs, ('/proc/stat', '/proc/sys/kernel/random/boot_id'))])")
    before = api.out(who, ["python3", "-c", code])
    make(image="tiny")
    assert api.out(who, ["python3", "-c", code]) == before


def test_the_clocks_begin_with_the_sandbox(api, make):
    begun = time.time()
    who = make()["id"]
    code = "import time; print(time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.time())"
    mono, boot, now = map(float, api.out(who, ["python3", "-c", code]).split())
    alive = time.time() - begun
    assert 0 < mono <= alive + 3 and 0 < boot <= alive + 3
    assert abs(now - time.time()) < DEADLINE  # the time of day is everyone's
    assert float(api.out(who, ["cat", "/proc/uptime"]).split()[0]) <= time.time() - begun + 3
    btime = next(int(line.split()[1]) for line in api.out(who, ["cat", "/proc/stat"]).splitlines()
                 if line.startswith("btime"))
    assert begun - 3 <= btime <= time.time()
    # A process inside is not older than its sandbox, and none begins in the future.
    # (Not by ps: it makes whole ticks of the uptime, and takes a process of the last one for ages old.)
    code = ("import glob; begun = [int(open(f).read().rsplit(')')[1].split()[19]) for f in glob.glob('/proc/[0-9]*/stat')]; "
            "print(open('/proc/uptime').read().split()[0], *begun)")
    uptime, *ticks = api.out(who, ["python3", "-c", code]).split()
    assert len(ticks) >= 2 and all(0 <= int(t) <= round(float(uptime) * 100) for t in ticks)


def test_the_clocks_cannot_be_set_from_inside(api, tiny):
    for pid in ("self", "1"):
        r = api.exec(tiny, f"echo 'monotonic 1000 0' > /proc/{pid}/timens_offsets")
        assert r["exit_code"] != 0
    spaces = api.out(tiny, "readlink /proc/self/ns/time; readlink /proc/self/ns/time_for_children").split()
    assert spaces[0] == spaces[1].replace("time_for_children", "time")
    assert spaces[0] != os.readlink("/proc/self/ns/time")


@pytest.mark.parametrize("command,expected", [
    ("uptime", "load average"), ("free -m", "Mem:"), ("vmstat 1 2", "procs"), ("top -bn1", "load average"),
    ("ps aux", "warren-init"), ("nproc", ""), ("lscpu", "CPU(s):"), ("df -h /", "/"),
    ("getconf _NPROCESSORS_ONLN", ""), ("python3 -c 'import os; print(os.getloadavg(), os.cpu_count())'", ","),
    ("node -e 'const os = require(\"os\"); console.log(os.cpus().length, os.uptime(), os.loadavg(), os.totalmem())'",
     "["), ("ip link show lo", "LOOPBACK"), ("sysctl fs.file-max fs.inotify.max_user_watches", "fs.file-max")])
def test_programs_can_still_read_proc_and_sys(api, box, command, expected):
    if api.exec(box, ["sh", "-c", f"command -v {command.split()[0]}"])["exit_code"] != 0:
        pytest.skip(f"the base image has no {command.split()[0]}")
    r = api.exec(box, command)
    assert r["exit_code"] == 0 and expected in r["stdout"], r
    assert r["stderr"] == "", r


SHOWN = ("cat /proc/loadavg /proc/cmdline /proc/vmstat /proc/cgroups /proc/sys/fs/file-nr; ls /sys/class /sys/class/net "
         "/sys/devices/system/cpu /sys/block /proc/fs; cat /proc/self/net/sockstat 2>&1; "
         "grep -v btime /proc/stat; cat /sys/class/net/lo/mtu")
CLOCKS = "cut -d' ' -f1 /proc/uptime; grep btime /proc/stat | cut -d' ' -f2; date +%s"


def clocks(api, who):
    return [float(line) for line in api.out(who, CLOCKS).split()]


def test_the_view_is_the_same_after_a_pause_and_in_a_copy(api, make):
    who = make()["id"]
    shown = api.exec(who, SHOWN)["stdout"]
    assert "denied" in shown
    uptime = clocks(api, who)[0]
    api.ok("POST", f"/v1/sandboxes/{who}/pause")
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    made = api.ok("POST", f"/v1/sandboxes/{who}/fork", {"count": 1, "memory": True})
    copy = made["sandboxes"][0]["id"]
    try:
        for one in (who, copy):
            assert api.exec(one, SHOWN)["stdout"] == shown
            later, booted, now = clocks(api, one)
            assert uptime <= later < uptime + DEADLINE * 2
            assert abs(now - later - booted) <= 2  # both say when it began
    finally:
        api.delete(copy)
        api.ok("DELETE", f"/v1/checkpoints/{made['checkpoint']['id']}")


MIB = 1 << 20
SIZE = ("grep -E '^(MemTotal|SwapTotal)' /proc/meminfo; cd /sys/fs/cgroup; "
        "cat cgroup.controllers memory.max memory.high memory.swap.max cpu.max pids.max")


def size_of(memory_mb, cpus, pids):
    return (f"MemTotal:       {memory_mb * 1024:8} kB\nSwapTotal:             0 kB\ncpu memory pids\n{memory_mb * MIB}\nmax\n0\n"
            f"{round(cpus * 100000)} 100000\n{pids}\n")


def meminfo(api, who):
    return {line.split(":")[0]: int(line.split()[1]) for line in api.out(who, ["cat", "/proc/meminfo"]).splitlines()}


def test_the_machine_is_as_large_as_the_limits(api, make):
    who = make(memory_mb=256, cpus=0.5, pids=100)["id"]
    assert api.out(who, SIZE) == size_of(256, 0.5, 100)
    total = api.out(who, "free -k | grep Mem: | awk '{print $2}'")
    assert int(total) == 256 * 1024
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"memory_mb": 384})
    assert api.out(who, SIZE) == size_of(384, 0.5, 100)
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"cpus": 1.5})
    assert api.out(who, SIZE) == size_of(384, 1.5, 100)


def test_memory_in_use_is_shown_when_it_is_read(api, make):
    who = make(memory_mb=256)["id"]
    code = "import time; b = bytearray(100 << 20); print('has it', flush=True); time.sleep(600)"
    n = api.start(who, ["python3", "-c", code])["process"]
    until(lambda: api.usage(who)["memory_bytes"] > 100 * MIB, what="the memory to be in use")
    m = meminfo(api, who)
    assert m["MemFree"] <= m["MemAvailable"] <= (256 - 100) * 1024 and m["MemTotal"] == 256 * 1024
    assert int(api.out(who, ["cat", "/sys/fs/cgroup/memory.current"])) > 100 * MIB
    api.ok("POST", f"/v1/sandboxes/{who}/processes/{n}/signal", {"signal": "SIGKILL"})


def test_files_that_the_kernel_can_drop_are_available_memory(api, make):
    who = make(memory_mb=256)["id"]
    api.exec(who, "head -c 100M /dev/zero > /tmp/f; sync; cat /tmp/f > /dev/null")
    until(lambda: api.usage(who)["memory_bytes"] > 50 * MIB, what="the file to be cached")
    m = meminfo(api, who)
    assert m["MemAvailable"] > m["MemFree"] + 40 * 1024
    assert m["Cached"] > 40 * 1024


def test_the_size_cannot_be_changed_from_inside(api, make):
    who = make(memory_mb=256)["id"]
    shown = api.out(who, SIZE)
    for path in ("/proc/meminfo", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/new"):
        r = api.exec(who, f"chmod 666 {path}; chown 0 {path}; rm -f {path}; echo 1 > {path}; true")
        assert r["exit_code"] == 0
    api.exec(who, "rm -rf /sys/fs/cgroup/*; mv /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.min; mkdir /sys/fs/cgroup/x")
    assert api.out(who, SIZE) == shown
    assert "new" not in api.out(who, ["ls", "/sys/fs/cgroup"])


def test_the_size_is_right_after_a_pause_and_in_a_copy(api, make):
    who = make(memory_mb=256, cpus=0.5, pids=100)["id"]
    api.ok("POST", f"/v1/sandboxes/{who}/pause")
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    made = api.ok("POST", f"/v1/sandboxes/{who}/fork", {"count": 1, "memory": True})
    copy = made["sandboxes"][0]["id"]
    try:
        assert api.out(copy, SIZE) == api.out(who, SIZE) == size_of(256, 0.5, 100)
        api.ok("PATCH", f"/v1/sandboxes/{copy}", {"memory_mb": 320})
        assert api.out(copy, SIZE) == size_of(320, 0.5, 100)
        assert api.out(who, SIZE) == size_of(256, 0.5, 100)
    finally:
        api.delete(copy)
        api.ok("DELETE", f"/v1/checkpoints/{made['checkpoint']['id']}")


def test_a_new_keeper_can_change_what_an_old_ones_sandbox_sees(fresh):
    api = fresh.api
    who = api.create(image="tiny", memory_mb=128, cpus=1)["id"]
    booted = api.out(who, ["grep", "btime", "/proc/stat"])
    fresh.kill_keeper()
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"memory_mb": 192, "cpus": 2})
    assert "MemTotal:         196608 kB" in api.out(who, ["cat", "/proc/meminfo"])
    assert api.out(who, ["cat", "/sys/fs/cgroup/memory.max"]) == f"{192 * MIB}\n"
    assert api.out(who, CPUS) == cpus_of(2)
    assert api.out(who, ["grep", "btime", "/proc/stat"]) == booted


# As nproc, Python, the C library, Node, htop and others count them.
CPUS = ("grep -c ^processor /proc/cpuinfo; grep -c '^cpu[0-9]' /proc/stat; cat /sys/devices/system/cpu/online; "
        "nproc; echo ${OMP_NUM_THREADS:-all} ${GOMAXPROCS:-all}")
HOST_CPUS = os.cpu_count()
needs_two_cpus = pytest.mark.skipif(HOST_CPUS < 2, reason="a machine with one processor")


def cpus_of(limit):
    n = min(math.ceil(limit), HOST_CPUS)
    return f"{n}\n{n}\n{'0' if n == 1 else f'0-{n - 1}'}\n{n}\n" + (f"{n} {n}\n" if n < HOST_CPUS else "all all\n")


@needs_two_cpus
@pytest.mark.parametrize("limit", [0.5, 1, 1.5, 2])
def test_as_many_processors_as_the_limit_keeps_busy(api, make, limit):
    who = make(cpus=limit)["id"]
    assert api.out(who, CPUS) == cpus_of(limit)
    code = "import os; print(os.cpu_count())"
    assert api.out(who, ["python3", "-c", code]) == f"{min(math.ceil(limit), HOST_CPUS)}\n"


@needs_two_cpus
def test_processors_follow_the_limit_and_a_copy_has_them_too(api, make):
    who = make(cpus=2)["id"]
    api.ok("PATCH", f"/v1/sandboxes/{who}", {"cpus": 1})
    assert api.out(who, CPUS) == cpus_of(1)
    made = api.ok("POST", f"/v1/sandboxes/{who}/fork", {"count": 1, "memory": True})
    copy = made["sandboxes"][0]["id"]
    try:
        api.ok("PATCH", f"/v1/sandboxes/{copy}", {"cpus": 2})
        assert api.out(copy, CPUS) == cpus_of(2)
        assert api.out(who, CPUS) == cpus_of(1)
    finally:
        api.delete(copy)
        api.ok("DELETE", f"/v1/checkpoints/{made['checkpoint']['id']}")


@needs_two_cpus
def test_a_number_of_threads_that_is_asked_for_is_kept(api, make):
    who = make(cpus=1, env={"OMP_NUM_THREADS": "7"})["id"]
    assert api.out(who, "echo $OMP_NUM_THREADS $GOMAXPROCS") == "7 1\n"
    r = api.exec(who, "echo $GOMAXPROCS", env={"GOMAXPROCS": "3"})
    assert r["stdout"] == "3\n"


def test_node_sizes_itself_by_the_sandbox(api, make):
    who = make(memory_mb=512)["id"]
    if api.exec(who, "command -v node")["exit_code"] != 0:
        pytest.skip("the base image has no node")
    code = "console.log(require('os').totalmem(), require('v8').getHeapStatistics().heap_size_limit)"
    total, heap = map(int, api.out(who, ["node", "-e", code]).split())
    assert total == 512 * MIB and heap < 512 * MIB
