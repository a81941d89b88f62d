"""The kernel shows what Warren's own processes have given up, and Warren works without it."""
import ctypes
import errno
import os
import platform
import signal
from pathlib import Path

import pytest

import harness
from harness import until

BITS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "SETUID": 7, "SYS_MODULE": 16, "SYS_RAWIO": 17, "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_PACCT": 20, "SYS_ADMIN": 21,
        "SYS_BOOT": 22, "SYS_TTY_CONFIG": 26, "AUDIT_CONTROL": 30, "MAC_OVERRIDE": 32, "MAC_ADMIN": 33, "SYSLOG": 34, "WAKE_ALARM": 35, "AUDIT_READ": 37,
        "PERFMON": 38, "BPF": 39}
NOT_SANITIZED = "san" not in harness.BUILD.name


def status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {k: v.strip() for k, v in (line.split(":", 1) for line in lines)}


def has(text, *names):
    return [n for n in names if int(text, 16) >> BITS[n] & 1]


def children(pid):
    return [int(c) for t in os.listdir(f"/proc/{pid}/task") for c in Path(f"/proc/{pid}/task/{t}/children").read_text().split()]


@pytest.fixture(scope="module")
def processes(daemon):
    """Pids by name: the daemon, its launchers, and what those started."""
    found = {"warrend": daemon.process.pid}
    for launcher in daemon.launcher():
        program = next(c for c in children(launcher) if status(c)["Name"] in ("warren-keeper", "warren-broker"))
        name = status(program)["Name"]
        found |= {name: program, name + "'s launcher": launcher}
    assert len(found) == 5, found
    return found


def test_warrend_and_the_broker_have_no_right_at_all(processes):
    for name in ("warrend", "warren-broker"):
        s = status(processes[name])
        sets = {k: int(s[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
        assert not any(sets.values()), (name, sets)
        assert s["NoNewPrivs"] == "1", name
        if NOT_SANITIZED:
            assert s["Seccomp"] == "2", name


def test_every_thread_of_warrend_is_filtered(processes):
    for task in Path(f"/proc/{processes['warrend']}/task").iterdir():
        assert "Seccomp:\t2" in (task / "status").read_text() or not NOT_SANITIZED


def test_launchers_are_root_without_its_rights(processes):
    for name in ("warren-keeper's launcher", "warren-broker's launcher"):
        s = status(processes[name])
        assert not int(s["CapPrm"], 16) and not int(s["CapEff"], 16), name
    assert has(status(processes["warren-broker's launcher"])["CapBnd"], "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "BPF") == []


def test_the_keeper_keeps_what_cells_need_and_no_more(processes):
    s = status(processes["warren-keeper"])
    away = ("SYS_MODULE", "SYS_RAWIO", "SYS_BOOT", "SYS_PACCT", "SYS_TTY_CONFIG", "AUDIT_CONTROL", "AUDIT_READ", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM")
    for which in ("CapBnd", "CapPrm", "CapEff"):
        assert has(s[which], *away) == [], which
        assert has(s[which], "SYS_ADMIN", "SYS_PTRACE", "SETUID", "CHOWN") == ["SYS_ADMIN", "SYS_PTRACE", "SETUID", "CHOWN"]


class Registers(ctypes.Structure):
    """As PTRACE_GETREGS has them on x86-64."""
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs").split()]


def have_called(pid, numbers):
    """What each of these system calls answers a process, with arguments that none accepts. The process sleeps in a call of its own,
    which is made again afterwards."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def trace(what, data=None):
        if libc.ptrace(what, pid, None, data) < 0:
            raise OSError(ctypes.get_errno(), f"ptrace {what:#x}")
    getregs, setregs, step, detach, seize, interrupt = 12, 13, 9, 17, 0x4206, 0x4207
    before, answers = Registers(), {}
    trace(seize)
    try:
        trace(interrupt)
        os.waitpid(pid, 0x40000000)
        trace(getregs, ctypes.addressof(before))
        code = os.pread(memory := os.open(f"/proc/{pid}/mem", os.O_RDONLY), 2, before.rip - 2)
        os.close(memory)
        assert code == b"\x0f\x05", "it does not sleep in a system call"
        for name, number in numbers.items():
            now = Registers.from_buffer_copy(before)
            now.rip, now.rax, now.orig_rax = before.rip - 2, number, 2**64 - 1
            now.rdi = now.rsi = now.rdx = now.r10 = now.r8 = now.r9 = 2**64 - 1
            trace(setregs, ctypes.addressof(now))
            trace(step)
            os.waitpid(pid, 0x40000000)
            trace(getregs, ctypes.addressof(now))
            answers[name] = -ctypes.c_longlong(now.rax).value
        trace(setregs, ctypes.addressof(before))
    finally:
        trace(detach)
    return answers


def test_the_keeper_is_filtered_and_what_it_starts_may_still_gain_rights(processes, daemon):
    """CRIU cannot work behind a filter: the process that starts it has none, and CRIU's capabilities alone."""
    s = status(processes["warren-keeper"])
    assert s["NoNewPrivs"] == "0"
    starter = status(daemon.starter())
    assert starter["PPid"] == str(processes["warren-keeper"])
    assert starter["Seccomp"] == "0" and starter["NoNewPrivs"] == "0"
    for which in ("CapBnd", "CapPrm", "CapEff"):
        assert has(starter[which], "BPF", "PERFMON", "SYS_MODULE", "SYS_RAWIO", "SYS_BOOT") == [], which
    assert sorted(os.listdir(f"/proc/{daemon.starter()}/fd"), key=int) == ["0", "1", "2", "3"]
    if NOT_SANITIZED:
        assert s["Seccomp"] == "2"
        for child in children(processes["warren-keeper"]):
            assert status(child)["Seccomp"] == "2" or status(child)["Name"] == "keeper-starter", status(child)["Name"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of calls and registers are x86-64's")
@pytest.mark.skipif(not NOT_SANITIZED, reason="a sanitizer's build installs no filter")
def test_a_call_that_the_keeper_gave_up_is_refused_when_it_makes_it(processes):
    refused = {"finit_module": 313, "kexec_load": 246, "io_uring_setup": 425, "perf_event_open": 298, "userfaultfd": 323, "add_key": 248,
               "open_by_handle_at": 304, "swapon": 167, "clock_settime": 227, "reboot": 169}
    needed = {"mount": 165, "setns": 308, "bpf": 321, "ptrace": 101}
    answers = have_called(processes["warren-keeper"], refused | needed)
    assert {n: a for n, a in answers.items() if n in refused and a != errno.EPERM} == {}
    assert {n: a for n, a in answers.items() if n in needed and a == errno.EPERM} == {}


def test_a_sandbox_has_as_many_filters_after_a_checkpoint_as_before(daemon):
    """Its own and the keeper's; CRIU, which makes the processes of one that comes back, adds none."""
    made = [daemon.api.create(image="tiny")["id"]]
    filters = lambda: daemon.api.out(made[-1], ["grep", "^Seccomp_filters:", "/proc/self/status"]).split()[1]
    try:
        before = filters()
        assert before == ("2" if NOT_SANITIZED else "1")
        for _ in range(3):
            fork = daemon.api.ok("POST", f"/v1/sandboxes/{made[-1]}/fork", {"count": 1, "memory": True})
            made.append(fork["sandboxes"][0]["id"])
            daemon.api.ok("DELETE", f"/v1/checkpoints/{fork['checkpoint']['id']}")
            assert filters() == before
    finally:
        for who in made:
            daemon.api.delete(who)


def test_who_kills_the_starter_gets_another_keeper_and_starter(tiny_tar):
    with harness.running(images={"tiny": tiny_tar}) as d:
        who = d.api.create(image="tiny")["id"]
        for victim in ("starter", "keeper"):
            old = d.keepers()
            os.kill(getattr(d, victim)(), signal.SIGKILL)
            until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in old), "the end of all of them, and no zombie")
            until(lambda: d.api.call("POST", f"/v1/sandboxes/{who}/exec", {"argv": ["true"]}).status == 200)
            assert status(d.starter())["PPid"] == str(d.keeper())
            d.api.ok("POST", f"/v1/sandboxes/{who}/checkpoints", {"memory": True})


def test_a_restarted_process_is_confined_again(daemon, processes):
    broker = processes["warren-broker"]
    os.kill(broker, 9)
    launcher = processes["warren-broker's launcher"]
    until(lambda: any(c != broker and status(c)["Name"] == "warren-broker" and int(status(c)["CapBnd"], 16) == 0 for c in children(launcher)), "a new broker, confined")


def test_a_cell_still_has_its_own_rights(daemon):
    """A cell's user namespace begins anew: the keeper's bounding set is not the cell's."""
    made = daemon.api.create(image="tiny")["id"]
    try:
        lines = dict(line.split(":", 1) for line in daemon.api.out(made, ["cat", "/proc/self/status"]).splitlines())
        assert has(lines["CapBnd"].strip(), "CHOWN", "SETUID", "SYS_CHROOT") == ["CHOWN", "SETUID", "SYS_CHROOT"]
        assert daemon.api.out(made, ["sh", "-c", "touch /f && chown 7:7 /f && stat -c %u /f"]).strip() == "7"
    finally:
        daemon.api.delete(made)
