"""`warren env`: what points other platforms' programs at this daemon."""
import json
import shlex
import subprocess

import pytest


def read_by_a_shell(text):
    """What a shell has in its environment after it read these lines."""
    out = subprocess.run(["env", "-i", "sh", "-c", f"{text}\nenv -0"], capture_output=True, text=True, check=True)
    return dict(v.split("=", 1) for v in out.stdout.split("\0") if v.startswith("E2B_"))


def wanted(daemon):
    mount = f"{daemon.url}/e2b"
    return {"E2B_API_KEY": "e2b_" + daemon.key.rsplit("_", 1)[1], "E2B_API_URL": mount,
            "E2B_SANDBOX_URL": mount, "E2B_VOLUME_API_URL": mount}


def test_a_shell_reads_it(daemon):
    done = daemon.cli("env", "e2b")
    assert (done.returncode, done.stderr) == (0, "")
    assert read_by_a_shell(done.stdout) == wanted(daemon)
    assert daemon.api.with_key(wanted(daemon)["E2B_API_KEY"]).call("GET", "/e2b/v2/sandboxes").status == 200


def test_a_program_reads_it(daemon):
    done = daemon.cli("--json", "env", "e2b")
    assert json.loads(done.stdout) == wanted(daemon), done.stderr


def test_on_the_socket_a_key_is_issued(daemon):
    alone = {"WARREN_URL": "", "WARREN_API_KEY": ""}
    before = {k["id"] for k in daemon.api.ok("GET", "/v1/keys")["keys"]}
    done = daemon.cli("--socket", daemon.run / "warren.sock", "env", "e2b", "--at", daemon.url + "/", env=alone)
    got = read_by_a_shell(done.stdout)
    new = {k["id"]: k for k in daemon.api.ok("GET", "/v1/keys")["keys"] if k["id"] not in before}
    assert [k["name"] for k in new.values()] == ["e2b"]
    assert all(i in done.stderr for i in new), done.stderr
    assert got["E2B_API_URL"] == f"{daemon.url}/e2b"
    assert daemon.api.with_key(got["E2B_API_KEY"]).call("GET", "/e2b/v2/sandboxes").status == 200
    # The key that a shell has by now is taken again.
    again = daemon.cli("--socket", daemon.run / "warren.sock", "env", "e2b", "--at", daemon.url, env={**alone, **got})
    assert read_by_a_shell(again.stdout) == got
    for i in new:
        daemon.api.ok("DELETE", f"/v1/keys/{i}")


@pytest.mark.parametrize("words, env", [
    ((), {"WARREN_API_KEY": "warren_" + "0" * 40}),
    (("--at", "http://127.0.0.1:1"), {}),
    (("--at", "it's; $(touch /tmp/no)"), {})])
def test_what_does_not_work_is_not_printed(daemon, words, env):
    done = daemon.cli("env", "e2b", *words, env=env)
    assert done.returncode == 1 and done.stdout == "", shlex.join(words)
    assert "--at" in done.stderr


def test_a_key_that_was_of_no_use_is_taken_back(daemon):
    before = {k["id"] for k in daemon.api.ok("GET", "/v1/keys")["keys"]}
    done = daemon.cli("--socket", daemon.run / "warren.sock", "env", "e2b", "--at", "http://127.0.0.1:1",
                      env={"WARREN_URL": "", "WARREN_API_KEY": ""})
    assert done.returncode == 1 and done.stdout == ""
    assert {k["id"] for k in daemon.api.ok("GET", "/v1/keys")["keys"]} == before
