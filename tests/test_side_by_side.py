"""Two daemons on one machine: nothing of one is the other's."""
from harness import Daemon


def test_two_instances(fresh, tiny_tar):
    other = Daemon(key="another-key-of-twenty-or-more")
    try:
        assert other.api.call("POST", "/v1/sandboxes", {"image": "tiny"}).code == "image_not_found"
        other.api.import_image("tiny", tiny_tar)
        a = fresh.api.create(image="tiny", name="same")["id"]
        b = other.api.create(image="tiny", name="same")["id"]
        assert a != b
        assert fresh.api.with_key(other.key).call("GET", "/v1/sandboxes").status == 401
        assert other.api.call("GET", f"/v1/sandboxes/{a}").status == 404
        one = int(fresh.api.out(a, ["cat", "/proc/self/uid_map"]).split()[1])
        two = int(other.api.out(b, ["cat", "/proc/self/uid_map"]).split()[1])
        assert abs(one - two) >= 65536, "two instances gave the same ids"
        fresh.kill()
        fresh.kill_keeper()
        assert other.api.out(b, ["echo", "unmoved"]) == "unmoved\n"
        fresh.start()
        assert fresh.api.out(a, ["echo", "back"]) == "back\n"
    finally:
        other.close()
    assert fresh.api.out("same", ["echo", "alone"]) == "alone\n"  # the other's end was its own


def test_directories_behind_a_closed_one_with_a_long_name(tiny_tar):
    """As `mktemp -d` and test runners make them: the daemon's user may not walk there by name."""
    daemon = Daemon(below="a-directory-that-only-root-may-enter-" + "x" * 20)
    try:
        daemon.api.import_image("tiny", tiny_tar)
        who = daemon.api.create(image="tiny")["id"]
        assert daemon.api.out(who, ["echo", "x"]) == "x\n"
        daemon.kill()
        daemon.start()
        assert daemon.api.out(who, ["echo", "y"]) == "y\n"
    finally:
        daemon.close()


def test_a_second_daemon_on_the_same_directories_is_refused(fresh):
    import subprocess
    done = subprocess.run(fresh.command("warrend", "--listen", "127.0.0.1:0", "--data", str(fresh.data),
                                        "--run", str(fresh.run)),
                          capture_output=True, text=True, timeout=30, env=fresh.environment())
    assert done.returncode != 0 and done.stderr
    who = fresh.api.create(image="tiny")["id"]
    assert fresh.api.out(who, ["echo", "x"]) == "x\n"


def test_a_port_in_use_is_said(daemon):
    import subprocess
    import tempfile
    with tempfile.TemporaryDirectory(prefix="wt-port-", dir="/tmp") as d:
        done = subprocess.run(daemon.command("warrend", "--listen", f"127.0.0.1:{daemon.port}", "--data",
                                             f"{d}/data", "--run", f"{d}/run", "--cgroup", "wt-port"),
                              capture_output=True, text=True, timeout=60, env=daemon.environment())
        assert done.returncode != 0 and str(daemon.port) in done.stderr
        subprocess.run(daemon.command("warren-keeper", "--data", f"{d}/data", "--run", f"{d}/run",
                                      "--cgroup", "wt-port", "--teardown"), timeout=60)
