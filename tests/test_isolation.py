"""The walls, tried from the inside. Each probe runs in a sandbox as root there."""
import json
import os
import pathlib
import subprocess

import pytest

from harness import until

PRELUDE = r"""
import ctypes, errno, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def sys_call(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *[a if isinstance(a, (bytes, ctypes._SimpleCData)) or
                     hasattr(a, '_type_') or hasattr(a, '_length_') else ctypes.c_long(a) for a in args])
    return 'ok' if r >= 0 else errno.errorcode[ctypes.get_errno()]
def tried(fn, *args, **kw):
    try:
        fn(*args, **kw)
        return 'ok'
    except OSError as e:
        return errno.errorcode[e.errno]
def read(path):
    with open(path) as f:
        return f.read()
"""


def probe(api, who, code, **more):
    """Run Python inside; it leaves its answer in `result`."""
    r = api.exec(who, ["python3", "-c", PRELUDE + code + "\nprint(json.dumps(result))"], **more)
    assert r["exit_code"] == 0, r
    return json.loads(r["stdout"])


@pytest.fixture(scope="module")
def cell(api):
    who = api.create()["id"]
    yield who
    api.delete(who)


@pytest.fixture(scope="module")
def neighbour(api):
    who = api.create()["id"]
    yield who
    api.delete(who)


def host_pids(who):
    """Processes of a sandbox, as the host sees them: its host name gives them away."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if who in (entry / "cgroup").read_text():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


# -- identity

def test_root_inside_is_nobody_outside(api, cell):
    uid_map = api.out(cell, ["cat", "/proc/self/uid_map"]).split()
    gid_map = api.out(cell, ["cat", "/proc/self/gid_map"]).split()
    assert uid_map[0] == "0" and uid_map[2] == "65536" and int(uid_map[1]) >= 65536
    assert gid_map[0] == "0" and gid_map[2] == "65536" and int(gid_map[1]) >= 65536


def test_no_two_sandboxes_share_an_id(api, cell, neighbour, make):
    starts = set()
    for who in (cell, neighbour, make(image="tiny")["id"], make(image="tiny")["id"]):
        start = int(api.out(who, ["cat", "/proc/self/uid_map"]).split()[1])
        assert all(abs(start - other) >= 65536 for other in starts)
        starts.add(start)


def test_processes_run_outside_as_their_range(api, cell):
    start = int(api.out(cell, ["cat", "/proc/self/uid_map"]).split()[1])
    n = api.start(cell, ["sleep", "600"])["process"]
    pids = until(lambda: host_pids(cell), "processes in the sandbox's control group")
    for pid in pids:
        uids = next(line for line in open(f"/proc/{pid}/status") if line.startswith("Uid:")).split()[1:]
        assert all(start <= int(u) < start + 65536 for u in uids), (pid, uids)
    api.ok("DELETE", f"/v1/sandboxes/{cell}/processes/{n}")


def test_every_namespace_is_its_own(api, cell, neighbour):
    names = "user mnt pid ipc uts net cgroup time".split()

    def spaces(who):
        return api.out(who, "for n in %s; do readlink /proc/self/ns/$n; done" % " ".join(names)).split()
    one, two = spaces(cell), spaces(neighbour)
    assert len(one) == len(two) == len(names)
    host = [os.readlink(f"/proc/self/ns/{n}") for n in names]
    for name, a, b, h in zip(names, one, two, host):
        assert len({a, b, h}) == 3, name


# -- privileges

DANGEROUS_CAPS = {  # bit: name; what Docker's default set leaves out
    2: "dac_read_search", 9: "linux_immutable", 11: "net_broadcast", 12: "net_admin", 14: "ipc_lock",
    15: "ipc_owner", 16: "sys_module", 17: "sys_rawio", 19: "sys_ptrace", 20: "sys_pacct",
    21: "sys_admin", 22: "sys_boot", 23: "sys_nice", 24: "sys_resource", 25: "sys_time",
    26: "sys_tty_config", 28: "lease", 30: "audit_control", 32: "mac_override", 33: "mac_admin",
    34: "syslog", 35: "wake_alarm", 36: "block_suspend", 37: "audit_read", 38: "perfmon", 39: "bpf",
    40: "checkpoint_restore",
}


def test_the_capability_bounding_set_is_at_least_dockers(api, cell):
    status = dict(line.split(":\t") for line in
                  api.out(cell, ["cat", "/proc/self/status"]).strip().split("\n") if ":\t" in line)
    for line in ("CapBnd", "CapPrm", "CapEff"):
        bits = int(status[line], 16)
        assert not [n for b, n in DANGEROUS_CAPS.items() if bits >> b & 1], line
    assert int(status["CapInh"], 16) == 0 and int(status["CapAmb"], 16) == 0


def test_a_user_has_no_capability(api, cell):
    status = api.out(cell, ["grep", "-E", "Cap(Prm|Eff|Inh|Amb)", "/proc/self/status"], user="user")
    assert set(status.replace("\t", " ").split()[1::2]) == {"0" * 16}


def test_a_seccomp_filter_is_on(api, cell):
    assert api.out(cell, ["grep", "^Seccomp:", "/proc/self/status"]).split()[1] == "2"


DENIED = {  # syscall: x86-64 number and arguments that would be fine without the filter
    "mount": "165, b'none\\0', b'/mnt\\0', b'tmpfs\\0', 0, 0",
    "umount2": "166, b'/proc\\0', 2",
    "pivot_root": "155, b'/\\0', b'/mnt\\0'",
    "unshare_user": "272, 0x10000000",
    "unshare_mount": "272, 0x20000",
    "unshare_net": "272, 0x40000000",
    "clone_newuser": "56, 0x10000000 | 17, 0, 0, 0, 0",
    "setns": "308, 0, 0",
    "bpf": "321, 5, ctypes.create_string_buffer(128), 128",
    "perf_event_open": "298, ctypes.create_string_buffer(128), 0, -1, -1, 0",
    "userfaultfd": "323, 0",
    "io_uring_setup": "425, 8, ctypes.create_string_buffer(256)",
    "keyctl": "250, 0, -3, 0",
    "add_key": "248, b'user\\0', b'x\\0', b'y\\0', 1, -3",
    "request_key": "249, b'user\\0', b'x\\0', 0, -3",
    "init_module": "175, b'x', 1, b'\\0'",
    "finit_module": "313, 0, b'\\0', 0",
    "delete_module": "176, b'x\\0', 0",
    "kexec_load": "246, 0, 0, 0, 0",
    "kexec_file_load": "320, 0, 0, 0, b'\\0', 0",
    "reboot": "169, 0xfee1dead, 672274793, 0",
    "swapon": "167, b'/tmp/x\\0', 0",
    "swapoff": "168, b'/tmp/x\\0'",
    "syslog": "103, 3, ctypes.create_string_buffer(64), 64",
    "settimeofday": "164, ctypes.create_string_buffer(16), 0",
    "clock_settime": "227, 0, ctypes.create_string_buffer(16)",
    "iopl": "172, 3",
    "ioperm": "173, 0, 1, 1",
    "quotactl": "179, 0x800007 << 8, b'/\\0', 0, 0",
    "acct": "163, b'/tmp/x\\0'",
    "open_by_handle_at": "304, -100, ctypes.create_string_buffer(128), 0",
    "move_mount": "429, -100, b'/\\0', -100, b'/mnt\\0', 0",
    "open_tree": "428, -100, b'/\\0', 1",
    "fsopen": "430, b'tmpfs\\0', 0",
    "fsmount": "432, 0, 0, 0",
    "fspick": "433, -100, b'/\\0', 0",
    "mount_setattr": "442, -100, b'/\\0', 0, ctypes.create_string_buffer(32), 32",
    "lookup_dcookie": "212, 0, ctypes.create_string_buffer(8), 8",
    "vhangup": "153",
    "nfsservctl": "180, 0, 0, 0",
    "process_vm_writev_init": "311, 1, 0, 0, 0, 0, 0",
    "modify_ldt": "154, 1, ctypes.create_string_buffer(16), 16",
    "move_pages_init": "279, 1, 0, 0, 0, 0, 0",
    "migrate_pages_init": "256, 1, 0, 0, 0",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("name", DENIED)
def test_a_dangerous_call_is_denied(api, cell, name):
    answer = probe(api, cell, f"result = sys_call({DENIED[name]})")
    if name.endswith("_init"):
        assert answer in ("EPERM", "ENOSYS", "EACCES"), answer
    else:
        assert answer in ("EPERM", "ENOSYS"), answer


def test_ptrace_of_the_init_is_denied(api, cell):
    assert probe(api, cell, "result = sys_call(101, 16, 1, 0, 0)") in ("EPERM", "ENOSYS", "EACCES")


@pytest.mark.parametrize("family,kind,proto", [
    ("AF_NETLINK=16", 3, 12), ("AF_PACKET=17", 3, 768), ("AF_ALG=38", 5, 0), ("AF_VSOCK=40", 1, 0),
    ("AF_XDP=44", 3, 0), ("AF_TIPC=30", 5, 0), ("AF_RDS=21", 5, 0), ("AF_KEY=15", 3, 2),
    ("AF_BLUETOOTH=31", 1, 0), ("AF_CAN=29", 3, 1), ("SCTP", 1, 132), ("DCCP", 6, 33)])
def test_odd_socket_families_are_denied(api, cell, family, kind, proto):
    number = int(family.split("=")[1]) if "=" in family else 2
    answer = probe(api, cell, f"result = tried(socket.socket, {number}, {kind}, {proto})")
    assert answer != "ok"


def test_a_setuid_program_gains_only_what_is_inside(api, cell):
    assert api.out(cell, ["sudo", "-n", "id", "-u"], user="user").strip() == "0"
    r = api.exec(cell, ["sudo", "-n", "true"], user="user")
    assert (r["exit_code"], r["stderr"]) == (0, "")
    caps = int(api.out(cell, "sudo -n grep CapEff /proc/self/status", user="user").split()[1], 16)
    assert not [n for b, n in DANGEROUS_CAPS.items() if caps >> b & 1]


# -- files, proc, sys, devices

def test_the_file_system_is_a_private_copy(api, cell, neighbour):
    api.out(cell, "echo mine > /etc/motd; rm -f /bin/rg /usr/bin/rg; chown user /opt; chmod 700 /srv")
    assert api.exec(neighbour, "cat /etc/motd")["stdout"] != "mine\n"
    assert api.out(neighbour, ["rg", "--version"])


def test_chown_to_every_id_of_the_range(api, cell):
    out = api.out(cell, "touch /tmp/f; for i in 1 1000 65534 65535; do chown $i:$i /tmp/f && "
                        "stat -c %u:%g /tmp/f; done")
    assert out.split() == [f"{i}:{i}" for i in (1, 1000, 65534, 65535)]
    assert api.exec(cell, "chown 65536 /tmp/f")["exit_code"] != 0


def test_set_id_bits_sticky_and_xattrs_work(api, cell):
    assert api.out(cell, "cp /bin/true /tmp/t; chmod 6755 /tmp/t; stat -c %a /tmp/t; "
                         "mkdir -p /tmp/d; chmod 1777 /tmp/d; stat -c %a /tmp/d").split() == ["6755", "1777"]
    assert probe(api, cell, "open('/tmp/x','w'); os.setxattr('/tmp/x', 'user.a', b'1'); "
                            "result = os.getxattr('/tmp/x', 'user.a').decode()") == "1"
    assert probe(api, cell, "result = tried(os.setxattr, '/tmp/x', 'trusted.overlay.opaque', b'y')") != "ok"


def test_packages_can_be_installed(api, cell):
    """dpkg does all that apt does but fetch: unpack, chown, run scripts as root."""
    script = """
set -e
mkdir -p /tmp/p/DEBIAN /tmp/p/usr/share/probe
printf 'Package: probe\\nVersion: 1\\nArchitecture: all\\nMaintainer: x <x@x>\\nDescription: x\\n' > /tmp/p/DEBIAN/control
printf '#!/bin/sh\\nuseradd --system probe-user\\nchown probe-user /usr/share/probe/f\\n' > /tmp/p/DEBIAN/postinst
chmod 755 /tmp/p/DEBIAN/postinst
echo data > /tmp/p/usr/share/probe/f
dpkg-deb --build /tmp/p /tmp/probe.deb >/dev/null
apt-get install -y /tmp/probe.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
stat -c %U /usr/share/probe/f
apt-get remove -y probe >/dev/null 2>&1
test ! -e /usr/share/probe/f
"""
    assert api.out(cell, ["bash", "-c", script], timeout=120).strip() == "probe-user"


MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats",
          "/proc/kmsg", "/proc/config.gz", "/proc/kallsyms", "/proc/sysrq-trigger", "/proc/kpagemap",
          "/proc/kpagecount", "/proc/kpageflags", "/proc/vmallocinfo", "/proc/iomem", "/proc/ioports",
          "/proc/modules"]


@pytest.mark.parametrize("path", MASKED)
def test_a_masked_file_tells_nothing(api, cell, path):
    answer = probe(api, cell, f"""
try:
    with open({path!r}, 'rb') as f:
        data = f.read(4096)
    # kallsyms and the like may show names, never an address.
    result = sorted(set(data) - set(b'0 \\n'))[:1] if {path!r} in ('/proc/iomem', '/proc/ioports') else len(data)
    if {path!r} == '/proc/kallsyms':
        result = any(line.split()[0].strip(b'0') for line in data.splitlines()[:-1])
    if {path!r} == '/proc/modules':
        result = any(not line.rstrip().endswith(b'0x0000000000000000') and b'0x0000000000000000' not in line for line in data.splitlines()[:-1])
    if {path!r} in ('/proc/iomem', '/proc/ioports'):
        result = any(line.split(b':')[0].strip(b' 0-') for line in data.splitlines()[:-1])
except OSError as e:
    result = 0
""")
    assert not answer, answer


@pytest.mark.parametrize("path", ["/sys/firmware", "/proc/scsi", "/proc/acpi", "/proc/asound",
                                  "/sys/devices/virtual/powercap", "/sys/kernel/debug",
                                  "/sys/kernel/tracing", "/sys/fs/bpf"])
def test_a_masked_directory_is_empty(api, cell, path):
    r = api.exec(cell, f"ls -A {path} 2>/dev/null")
    assert r["stdout"] == ""


def test_nothing_under_proc_sys_or_sys_can_be_written(api, cell):
    """Walk them all: what opens for writing is a hole."""
    opened = probe(api, cell, """
opened, tries = [], 0
for top in ('/proc/sys', '/proc/irq', '/proc/bus', '/proc/fs', '/sys'):
    for base, dirs, files in os.walk(top):
        for name in files:
            path = os.path.join(base, name)
            if os.path.islink(path):
                continue
            tries += 1
            try:
                fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.close(fd)
                opened.append(path)
            except OSError:
                pass
result = opened[:20], tries
""", timeout=120)
    assert opened[0] == [] and opened[1] > 500, opened


def test_mounts_are_what_they_should_be(api, cell):
    mounts = {}
    for line in api.out(cell, ["cat", "/proc/self/mountinfo"]).splitlines():
        fields = line.split()
        mounts[fields[4]] = (set(fields[5].split(",")), fields[fields.index("-") + 1])
    assert mounts["/"][1] == "overlay"
    assert mounts["/proc"][1] == "proc" and {"nosuid", "nodev", "noexec"} <= mounts["/proc"][0]
    if "/sys" in mounts:
        assert {"ro", "nosuid", "nodev", "noexec"} <= mounts["/sys"][0]
    assert "nosuid" in mounts["/dev"][0]
    assert {"nosuid", "noexec"} <= mounts["/dev/pts"][0]
    assert {"nosuid", "nodev"} <= mounts["/dev/shm"][0]
    assert "/proc/sys" in mounts and "ro" in mounts["/proc/sys"][0]


def test_no_host_path_shows_in_the_mounts(api, daemon, cell):
    assert str(daemon.dir) not in api.out(cell, ["cat", "/proc/self/mountinfo"])
    assert str(daemon.dir) not in api.out(cell, "cat /proc/mounts /proc/1/cgroup /proc/self/cgroup")


def test_control_groups_show_no_name_of_the_host(api):
    """Of a cell that was made, and of one that came back from its memory."""
    cell = api.create(image="tiny")["id"]
    for _ in range(2):
        groups = [line.split(":", 2) for line in api.out(cell, ["cat", "/proc/self/cgroup"]).split()]
        assert groups and all(path == "/" for n, _, path in groups if n != "0"), groups
        api.ok("POST", f"/v1/sandboxes/{cell}/pause")
    api.delete(cell)


def test_the_devices_are_the_harmless_ones(api, cell):
    names = set(api.out(cell, ["ls", "/dev"]).split())
    assert names <= {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd",
                     "stdin", "stdout", "stderr", "mqueue", "console", "core"}
    assert {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"} <= names
    assert api.out(cell, "echo x > /dev/null; head -c 4 /dev/zero | wc -c; "
                         "head -c 4 /dev/urandom | wc -c").split() == ["4", "4"]


def test_device_nodes_cannot_be_used(api, cell):
    assert probe(api, cell, """
result = []
for name, kind, major, minor in (('mem', 0o020600, 1, 1), ('kmsg', 0o020600, 1, 11), ('sda', 0o060600, 8, 0),
                                 ('vda', 0o060600, 254, 0), ('loop', 0o060600, 7, 0), ('fuse', 0o020600, 10, 229),
                                 ('tun', 0o020600, 10, 200), ('kvm', 0o020600, 10, 232)):
    path = '/tmp/' + name
    made = tried(os.mknod, path, kind, os.makedev(major, minor))
    if made == 'ok' and tried(os.open, path, os.O_RDONLY) == 'ok':
        result.append(name)
""") == []


def test_no_descriptor_is_inherited(api, tiny):
    listing = api.out(tiny, "ls -l /proc/self/fd | awk '{print $9, $10, $11}'")
    numbers = [line.split()[0] for line in listing.splitlines() if line.strip()]
    assert set(numbers) <= {"0", "1", "2", "3"}, listing  # 3 is ls's own directory
    assert "/tmp/wt-" not in listing


def test_the_init_is_out_of_reach(api, cell):
    answers = probe(api, cell, """
result = {}
for name in ('mem', 'environ', 'maps', 'fd', 'exe', 'root', 'cwd', 'map_files'):
    path = '/proc/1/' + name
    if name in ('fd', 'map_files'):
        try:
            result[name] = 'links' if any(tried(os.readlink, path + '/' + n) == 'ok' for n in os.listdir(path)) else 'none'
        except OSError as e:
            result[name] = errno.errorcode[e.errno]
    elif name in ('exe', 'root', 'cwd'):
        result[name] = tried(os.readlink, path)
    else:
        try:
            fd = os.open(path, os.O_RDWR if name == 'mem' else os.O_RDONLY)
            result[name] = 'ok' if os.read(fd, 1) else 'empty'
        except OSError as e:
            result[name] = errno.errorcode[e.errno]
result['write_exe'] = tried(os.open, '/proc/1/exe', os.O_WRONLY)
result['kill'] = tried(os.kill, 1, 9)
""")
    assert answers["mem"] in ("EACCES", "EPERM", "EIO"), answers
    assert answers["write_exe"] != "ok"
    assert answers["environ"] in ("EACCES", "EPERM", "empty"), answers
    assert answers["fd"] in ("EACCES", "EPERM", "none"), answers
    assert api.out(cell, ["echo", "alive"]) == "alive\n"  # kill(1, 9) did nothing


def test_our_own_binary_cannot_be_overwritten(api, cell):
    answer = probe(api, cell, """
result = []
for pid in os.listdir('/proc'):
    if pid.isdigit() and int(pid) != os.getpid():
        for flags in (os.O_WRONLY, os.O_RDWR):
            if tried(os.open, f'/proc/{pid}/exe', flags) == 'ok':
                result.append(pid)
""")
    assert answer == []


def test_dotdot_and_chroot_stay_inside(api, cell):
    assert probe(api, cell, """
os.makedirs('/tmp/jail', exist_ok=True)
fd = os.open('/', os.O_RDONLY)
os.chroot('/tmp/jail')
os.fchdir(fd)
for _ in range(50):
    os.chdir('..')
os.chroot('.')
result = sorted(os.listdir('/'))
""") == sorted(api.out(cell, ["ls", "-A", "/"]).split())


def test_the_cgroup_tree_is_not_writable(api, cell):
    assert api.exec(cell, "for f in $(find /sys/fs/cgroup -name 'cgroup.procs' -o -name release_agent "
                          "-o -name memory.max 2>/dev/null | head -20); do echo 1 > $f && echo wrote; done "
                          "2>/dev/null")["stdout"] == ""


def test_core_pattern_and_the_like_are_untouched(api, cell):
    before = open("/proc/sys/kernel/core_pattern").read()
    api.exec(cell, "echo '|/tmp/x' > /proc/sys/kernel/core_pattern; echo /tmp/x > /proc/sys/kernel/modprobe; "
                   "echo x > /sys/kernel/uevent_helper")
    assert open("/proc/sys/kernel/core_pattern").read() == before


# -- network and neighbours

def test_there_is_loopback_and_nothing_else(api, cell):
    assert [line.split(":")[0].strip() for line in
            api.out(cell, ["cat", "/proc/net/dev"]).splitlines()[2:]] == ["lo"]
    assert probe(api, cell, """
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()
b = socket.create_connection(a.getsockname())
six = socket.socket(socket.AF_INET6); six.bind(('::1', 0))
result = 'up'
""") == "up"


@pytest.mark.parametrize("address", ["1.1.1.1", "169.254.169.254", "10.0.0.1", "192.168.0.1"])
def test_nothing_outside_is_reachable(api, cell, address):
    answer = probe(api, cell, f"""
s = socket.socket(); s.settimeout(3)
result = tried(s.connect, ({address!r}, 80))
""")
    assert answer in ("ENETUNREACH", "EHOSTUNREACH", "EPERM", "EACCES", "ECONNREFUSED")


def test_the_daemon_is_not_reachable_from_inside(api, daemon, cell):
    answer = probe(api, cell, f"result = tried(socket.create_connection, ('127.0.0.1', {daemon.port}), 3)")
    assert answer == "ECONNREFUSED"


def test_neighbours_do_not_meet(api, cell, neighbour):
    n = api.start(cell, ["python3", "-c", """
import socket, time
a = socket.socket(); a.bind(('127.0.0.1', 7999)); a.listen()
u = socket.socket(socket.AF_UNIX); u.bind('\\0meeting-place'); u.listen()
print('up', flush=True); time.sleep(600)
"""])["process"]
    with api.output(cell, n) as s:
        s.until(type="stdout")
    assert probe(api, neighbour, """
result = [tried(socket.create_connection, ('127.0.0.1', 7999), 3),
          tried(socket.socket(socket.AF_UNIX).connect, '\\0meeting-place')]
""") == ["ECONNREFUSED", "ECONNREFUSED"]
    assert "meeting" not in api.out(neighbour, ["cat", "/proc/net/unix"])
    own = api.out(neighbour, ["ps", "-eo", "args"])
    assert "7999" not in own
    api.ok("DELETE", f"/v1/sandboxes/{cell}/processes/{n}")


def test_only_its_own_processes_can_be_seen_and_signalled(api, cell):
    api.out(cell, "kill -9 -1; true")
    n = api.start(cell, ["sleep", "600"])["process"]
    seen = [int(p) for p in api.out(cell, "ls /proc | grep -E '^[0-9]+$'").split()]
    assert len(seen) < 10 and 1 in seen
    api.ok("DELETE", f"/v1/sandboxes/{cell}/processes/{n}")


def test_kill_everything_spares_the_init(api, tiny):
    api.exec(tiny, "kill -9 -1")
    assert api.out(tiny, ["echo", "still here"]) == "still here\n"


def test_ipc_is_apart(api, cell, neighbour):
    made = api.out(cell, ["python3", "-c", "import ctypes; print(ctypes.CDLL(None).shmget(0x5157, 4096, 0o1666))"])
    assert int(made) >= 0
    assert api.out(neighbour, ["python3", "-c", "import ctypes; print(ctypes.CDLL(None).shmget(0x5157, 4096, 0o666))"]).strip() == "-1"


def test_scheduling_cannot_be_abused(api, cell):
    answers = probe(api, cell, """
result = [tried(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(50)),
          tried(os.setpriority, os.PRIO_PROCESS, 0, -20)]
""")
    assert answers[0] != "ok" and answers[1] != "ok"


def test_a_busy_neighbour_does_not_stop_the_api(api, make, tiny):
    busy = make(image="tiny", cpus=0.5)["id"]
    for _ in range(8):
        api.start(busy, "while :; do :; done")
    for _ in range(20):
        assert api.out(tiny, ["echo", "x"]) == "x\n"


def test_symlinked_directories_in_an_image_do_not_lead_out(api, tiny_tar, tmp_path, make):
    """An image whose /dev, /proc and /etc are links: the host's own must stay untouched."""
    import io
    import tarfile
    evil = tmp_path / "evil.tar"
    with tarfile.open(evil, "w") as tar:
        with tarfile.open(tiny_tar) as source:
            for member in source:
                if member.name.split("/")[0] not in ("dev", "proc", "sys", "run"):
                    tar.addfile(member, source.extractfile(member) if member.isreg() else None)
        for name in ("dev", "proc", "sys", "run"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"/../../../../tmp/wt-evil-{name}"
            tar.addfile(link)
    api.refused(400, "invalid_image", "PUT", "/v1/images/evil", evil.read_bytes())
    assert not [p for p in os.listdir("/tmp") if p.startswith("wt-evil-")]


@pytest.mark.parametrize("name,kind,link,refused", [
    ("../wt-escaped", "REGTYPE", None, True), ("/tmp/wt-escaped", "REGTYPE", None, False),
    ("a/../../wt-escaped", "REGTYPE", None, True), ("link", "SYMTYPE", "/tmp", True), ("hard", "LNKTYPE", "/etc/passwd", True),
    ("hard2", "LNKTYPE", "../../etc/shadow", True)])
def test_archives_cannot_write_outside(api, daemon, name, kind, link, refused):
    import io
    import tarfile
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.type = getattr(tarfile, kind)
        if link:
            info.linkname = link
        else:
            info.size = 4
        tar.addfile(info, io.BytesIO(b"evil") if not link else None)
        if kind == "SYMTYPE":
            info = tarfile.TarInfo("link/wt-escaped")
            info.size = 4
            tar.addfile(info, io.BytesIO(b"evil"))
    reply = api.call("PUT", "/v1/images/slip", out.getvalue())
    try:
        assert reply.status == (400 if refused else 201), reply
        assert not os.path.exists("/tmp/wt-escaped")
        # Nor anywhere in the storage, but below the root of the image's own tree.
        pool = f"/proc/{daemon.keepers()[0]}/root{daemon.data}"
        found = subprocess.run(["find", pool, "-name", "wt-escaped"], capture_output=True, text=True, timeout=60).stdout.split()
        assert all(path.endswith("/tmp/wt-escaped") for path in found) and bool(found) != refused, found
    finally:
        api.call("DELETE", "/v1/images/slip")
