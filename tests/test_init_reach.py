"""Programs in a sandbox cannot reach its pid 1: tried by every call and file that names it."""
import contextlib
import os
import pathlib
import time

import pytest

from harness import until
from test_isolation import host_pids, probe


@pytest.fixture(scope="module")
def cell(api):
    who = api.create()["id"]
    yield who
    api.delete(who)


def init_of(who):
    """Pid 1 of a sandbox, as the host knows it."""
    for pid in host_pids(who):
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            if next(line for line in status.split("\n") if line.startswith("NSpid:")).split()[-1] == "1":
                return pid
    raise AssertionError("no init")


def seen(pid):
    """Everything about a process that an attack could change."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {
        "limits": pathlib.Path(f"/proc/{pid}/limits").read_text(),
        "nice": stat[16], "policy": os.sched_getscheduler(pid), "cpus": os.sched_getaffinity(pid),
        "slack": pathlib.Path(f"/proc/{pid}/timerslack_ns").read_text(),
        "oom": pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(),
        "comm": pathlib.Path(f"/proc/{pid}/comm").read_text(),
        "signals": [line for line in status.split("\n") if line.startswith(("ShdPnd", "SigPnd"))],
    }


def busy_s(pid):
    """Cpu time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


ATTEMPTS = r"""
import fcntl, mmap, resource, signal, time
NR = dict(prlimit64=302, sched_setaffinity=203, sched_setattr=314, sched_setparam=142, sched_setscheduler=144,
          setpriority=141, ioprio_set=251, kill=62, tkill=200, tgkill=234, rt_sigqueueinfo=129, rt_tgsigqueueinfo=297,
          pidfd_open=434, pidfd_getfd=438, pidfd_send_signal=424, process_madvise=440, process_mrelease=448, ptrace=101,
          process_vm_readv=310, process_vm_writev=311, kcmp=312, migrate_pages=256, move_pages=279, setpgid=109,
          get_robust_list=274, prctl=157, setns=308, perf_event_open=298, keyctl=250)
zero = ctypes.create_string_buffer(256)
one = ctypes.create_string_buffer(b'\1' + b'\0' * 255)
attr = ctypes.create_string_buffer(struct.pack('IIQiIQQQ', 48, 5, 0, 0, 0, 0, 0, 0) + b'\0' * 64)  # SCHED_IDLE
local = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(zero), 8))
remote = ctypes.create_string_buffer(struct.pack('QQ', 0x400000, 8))
info = ctypes.create_string_buffer(struct.pack('iii', 40, 0, -1) + b'\0' * 116)
HIGH = 1 << 32
result = {}
for high in (0, HIGH):
    tries = {
        'prlimit nofile': ('prlimit64', 1 | high, 7, zero, 0), 'prlimit memlock': ('prlimit64', 1 | high, 8, zero, 0),
        'prlimit cpu': ('prlimit64', 1 | high, 0, zero, 0), 'prlimit nproc': ('prlimit64', 1 | high, 6, zero, 0),
        'affinity': ('sched_setaffinity', 1 | high, 8, one), 'sched_setattr': ('sched_setattr', 1 | high, attr, 0),
        'sched_setscheduler': ('sched_setscheduler', 1 | high, 5, zero),
        'sched_setparam': ('sched_setparam', 1 | high, zero),
        'nice': ('setpriority', 0, 1 | high, 19), 'nice group': ('setpriority', 1, 1 | high, 19),
        'nice user': ('setpriority', 2 | high, 0, 19),
        'ionice': ('ioprio_set', 1, 1 | high, 3 << 13), 'ionice group': ('ioprio_set', 2, 1 | high, 3 << 13),
        'ionice user': ('ioprio_set', 3 | high, 0, 3 << 13),
        'kill stop': ('kill', 1 | high, 19), 'kill': ('kill', 1 | high, 9), 'kill chld': ('kill', 1 | high, 17),
        'tkill': ('tkill', 1 | high, 17), 'tgkill': ('tgkill', 1, 1 | high, 17),
        'queue': ('rt_sigqueueinfo', 1 | high, 40, info), 'tgqueue': ('rt_tgsigqueueinfo', 1, 1 | high, 40, info),
        'pidfd': ('pidfd_open', 1 | high, 0), 'seize': ('ptrace', 0x4206, 1 | high, 0, 0),
        'attach': ('ptrace', 16, 1 | high, 0, 0), 'vm read': ('process_vm_readv', 1 | high, local, 1, remote, 1, 0),
        'vm write': ('process_vm_writev', 1 | high, local, 1, remote, 1, 0), 'kcmp': ('kcmp', 1, os.getpid(), 0, 0, 0),
        'migrate': ('migrate_pages', 1 | high, 64, one, one), 'move': ('move_pages', 1 | high, 0, 0, 0, 0, 0),
        'setpgid': ('setpgid', 1 | high, 0), 'robust': ('get_robust_list', 1 | high, zero, zero),
        'core sched': ('prctl', 62, 1, 1, 0, 0), 'perf': ('perf_event_open', zero, 1, -1, -1, 0),
    }
    for name, (call, *args) in tries.items():
        result[name + (' high' if high else '')] = sys_call(NR[call], *args)
d = os.open('/proc/1', os.O_RDONLY)
result['getfd'] = sys_call(NR['pidfd_getfd'], d, 0, 0)
result['madvise'] = sys_call(NR['process_madvise'], d, remote, 1, 21, 0)
result['mrelease'] = sys_call(NR['process_mrelease'], d, 0)
result['setns'] = sys_call(NR['setns'], d, 0x20000)
# Signals that no filter can tell from others: through a descriptor of its directory, and those that tell of input.
a, b = socket.socketpair()
fcntl.fcntl(a, 10, 41)            # F_SETSIG
fcntl.fcntl(a, fcntl.F_SETOWN, 1)
fcntl.fcntl(a, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
for i in range(2000):
    sys_call(NR['pidfd_send_signal'], d, 34 + i % 30, 0, 0)
    sys_call(NR['pidfd_send_signal'], d, signal.SIGSTOP, 0, 0)
    b.send(b'x')
    a.recv(1)
"""


def test_nothing_inside_changes_what_init_is(api, cell):
    pid = init_of(cell)
    before = seen(pid)
    result = probe(api, cell, ATTEMPTS)
    assert {name: r for name, r in result.items() if r == "ok"} == {}
    assert api.out(cell, ["echo", "alive"]) == "alive\n"
    until(lambda: seen(pid) == before, "init as it was, and no signal left at it")


def test_a_storm_of_signals_does_not_keep_init_busy(api, cell):
    """Signals that init must read cost it little, and commands run and end meanwhile."""
    pid = init_of(cell)
    storm = api.start(cell, ["python3", "-c", """
import ctypes, os
libc, d = ctypes.CDLL(None), os.open('/proc/1', os.O_RDONLY)
while True:
    for signo in (40, 17, 1):
        libc.syscall(424, d, signo, 0, 0)
"""])["process"]
    before, began = busy_s(pid), time.monotonic()
    for i in range(20):
        assert api.out(cell, ["echo", str(i)]) == f"{i}\n"
    until(lambda: time.monotonic() - began > 2)
    assert busy_s(pid) - before < 0.25 * (time.monotonic() - began)
    api.ok("DELETE", f"/v1/sandboxes/{cell}/processes/{storm}")


def test_a_process_still_rules_itself(api, cell):
    result = probe(api, cell, r"""
import resource, signal
child = os.fork()
if child == 0:
    signal.pause()
result = {
    'own limit': tried(resource.prlimit, 0, resource.RLIMIT_NOFILE, (64, 64)),
    "a child's limit": tried(resource.prlimit, child, resource.RLIMIT_NOFILE, (32, 32)),
    'nice': tried(os.setpriority, os.PRIO_PROCESS, 0, 5), 'nice child': tried(os.setpriority, os.PRIO_PROCESS, child, 5),
    'cpus': tried(os.sched_setaffinity, child, os.sched_getaffinity(0)),
    'is there a pid 1': tried(os.kill, 1, 0), 'kill': tried(os.kill, child, 9),
}
""")
    assert set(result.values()) == {"ok"}, result


def test_no_file_of_init_takes_a_word(api, cell):
    """Every file below /proc/1, written to by root inside: with what it holds, and with numbers."""
    pid = init_of(cell)
    until(lambda: not any(int(line.split()[1], 16) for line in seen(pid)["signals"]), "no signal to be left at it")
    before = seen(pid)
    result = probe(api, cell, r"""
written, n = [], 0
for top in ('/proc/1', '/proc/1/task/1'):
    for where, dirs, files in os.walk(top):
        dirs[:] = [d for d in dirs if d not in ('task', 'cwd', 'root')]
        for name in files:
            path = os.path.join(where, name)
            for text in (b'0', b'1', b'-1000', b'1000000000', b'x'):
                n += 1
                try:
                    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                except OSError:
                    break
                try:
                    os.write(fd, text)
                    written.append(path)
                except OSError:
                    pass
                os.close(fd)
result = {'written': written, 'n': n}
""")
    assert result["written"] == [] and result["n"] > 50, result
    until(lambda: seen(pid) == before, "init as it was")


def test_init_has_limits_of_its_own(api, make):
    who = make(image="tiny", cpus=0.25)["id"]
    groups = dict(line.split(":", 2)[1:] for line in
                  pathlib.Path(f"/proc/{init_of(who)}/cgroup").read_text().strip().split("\n"))
    top = pathlib.Path("/sys/fs/cgroup")
    if "memory" in groups:
        mine = top / "memory" / groups["memory"].lstrip("/")
        assert mine.name == f"{who}.init"
        assert int((mine / "memory.limit_in_bytes").read_text()) < 1 << 30
        assert int((top / "cpu" / groups["cpu"].lstrip("/") / "cpu.cfs_quota_us").read_text()) == 50000
    else:
        mine = top / groups[""].lstrip("/")
        assert mine.name == "init"
        assert int((mine / "memory.max").read_text()) < 1 << 30
        assert (mine / "cpu.max").read_text().split()[0] == "50000"
