"""The kernel shows what Warren's own processes have given up, and Warren works without it."""
import os
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
