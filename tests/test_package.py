"""The Debian package: made from the tree, installed on a clean Debian, used from there."""
import gzip
import os
import pathlib
import re
import subprocess

import pytest

from harness import BUILD, ROOT

pytestmark = pytest.mark.skipif(BUILD != ROOT / "build", reason="another flavour of build is under test")
CACHE = pathlib.Path(os.environ.get("WARREN_CACHE", "/var/cache/warren"))

# What a new machine's administrator types, then one who removes it all. Network and process
# namespaces of its own keep it apart from a daemon of this machine.
INSIDE = """
set -eux
ip link set lo up
cp /usr/share/warren/warren.conf /etc/warren/warren.conf
echo "cgroup = $CGROUP" >>/etc/warren/warren.conf
warrend >/var/log/warrend.log 2>&1 &
daemon=$!
trap 'cat /var/log/warrend.log; kill -9 $daemon' EXIT
for i in $(seq 300); do warren ls >/dev/null 2>&1 && break; sleep 0.1; done
warren-image base
warren run -- sh -c 'echo "uid $(id -u) on $(uname -s)"'
warren create --name box --memory 256m
warren exec box -- sh -c 'echo kept > /root/note'
warren stop box
warren start box
warren exec box -- cat /root/note
warren run -d -- sleep 1000
pgrep warren-init
trap 'cat /var/log/warrend.log' EXIT
kill $daemon # as systemd does when the package is removed
wait $daemon
dpkg --remove warren
if pgrep warren-init; then exit 1; fi
ls /var/lib/warren
dpkg --purge warren
trap - EXIT
"""


@pytest.fixture(scope="module")
def package():
    done = subprocess.run([ROOT / "dev", "package"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip())


@pytest.fixture(scope="module")
def unpacked(package, tmp_path_factory):
    at = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["dpkg-deb", "-x", package, at], check=True, timeout=60)
    return at


def test_each_command_has_a_manual_page(unpacked):
    lines = subprocess.run([BUILD / "warren", "help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z0-9]+(?: [a-z0-9]+)?)  +[A-Z]", lines.split("OPTIONS OF")[0], re.M)
    assert len(commands) > 60
    for command in commands:
        page = unpacked / f"usr/share/man/man1/warren-{command.replace(' ', '-')}.1.gz"
        text = gzip.open(page, "rt").read()
        assert f"\nwarren {command} \\- " in text, command
        assert ".SH SYNOPSIS" in text and ".SH EXAMPLES" in text, command


def test_manual_pages_are_well_formed(unpacked):
    for page in (unpacked / "usr/share/man").rglob("*.gz"):
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "120"})
        assert done.returncode == 0 and done.stdout.strip() and not done.stderr, (page, done.stderr)


def test_the_sample_names_every_setting_and_changes_none(unpacked, tmp_path):
    sample = (unpacked / "etc/warren/warren.conf").read_text()
    options = subprocess.run([BUILD / "warrend", "--help"], capture_output=True, text=True, check=True).stdout
    for name in set(re.findall(r"^  --([a-z-]+) [A-Zs]", options, re.M)) - {"config"}:
        assert re.search(rf"^#{name} = \S", sample, re.M), name
    assert all(line.startswith("#") for line in sample.splitlines() if line)
    # A setting with its '#' taken away is one that the daemon reads.
    (tmp_path / "warren.conf").write_text(sample.replace("#pool = 4", "pool = many"))
    done = subprocess.run([BUILD / "warrend", "--config", tmp_path / "warren.conf"], capture_output=True, text=True)
    assert done.returncode == 2 and "--pool must be a number" in done.stderr


def test_it_brings_what_operators_need(unpacked):
    share = unpacked / "usr/share/warren"
    for name in ("prometheus/warren.rules.yml", "grafana/warren.json"):
        assert (share / name).read_text() == (ROOT / "etc" / name).read_text()
    done = subprocess.run([unpacked / "usr/bin/warren-backup", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "restore DIR" in done.stdout


@pytest.mark.timeout(1200)
def test_it_installs_on_a_clean_debian_and_works_there(package, tmp_path):
    root, group = tmp_path / "root", f"warren-package-{os.getpid()}"
    install = 'chroot "$1" apt-get install -y --no-install-recommends /warren.deb iproute2 procps'
    made = subprocess.run(["mmdebstrap", "--variant=minbase", f"--customize-hook=cp '{package}' \"$1/warren.deb\"",
                           f"--customize-hook={install}", "bookworm", root],
                          capture_output=True, text=True, timeout=900)
    assert made.returncode == 0, made.stderr[-4000:]
    (root / "var/cache/warren").mkdir()
    script = (f"mount --bind '{root}' '{root}' && cd '{root}' && mount --rbind /dev dev && mount --rbind /sys sys && "
              f"mount --bind '{CACHE}' var/cache/warren && pivot_root . mnt && exec chroot . "
              # The host's tree is to be gone from sight; a umount(8) that found no /mnt was seen once.
              "sh -c 'mount -t proc proc /proc && { umount -l /mnt || { cat /proc/self/mountinfo; mount -t tmpfs none /mnt; }; } && "
              "exec sh -c \"$INSIDE\"'")
    done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script],
                          capture_output=True, text=True, timeout=600,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "INSIDE": INSIDE, "CGROUP": group})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "uid 0 on Linux\n" in done.stdout and "kept\n" in done.stdout
    assert "still in /var/lib/warren" in done.stdout  # a purge deletes nothing that users made
