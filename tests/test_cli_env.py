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


@pytest.fixture
def on_socket(daemon, tmp_path):
    """`warren env e2b` as root has it on the socket, with a home of its own; its keys are gone after the test."""
    def run(*words, home=tmp_path, **env):
        return daemon.cli("--socket", daemon.run / "warren.sock", "env", "e2b", *words,
                          env={"WARREN_URL": "", "WARREN_API_KEY": "", "HOME": str(home), "XDG_CONFIG_HOME": "", **env})
    before = set(keys(daemon))
    yield run
    for i in set(keys(daemon)) - before:
        daemon.api.ok("DELETE", f"/v1/keys/{i}")


def keys(daemon):
    return {k["id"]: k["name"] for k in daemon.api.ok("GET", "/v1/keys")["keys"]}


def works(daemon, got):
    return daemon.api.with_key(got["E2B_API_KEY"]).call("GET", "/e2b/v2/sandboxes").status == 200


def test_on_the_socket_a_key_is_issued_and_found_again(daemon, on_socket, tmp_path):
    before = keys(daemon)
    done = on_socket()
    got = read_by_a_shell(done.stdout)
    [new] = keys(daemon).keys() - before.keys()
    file = tmp_path / ".config/warren/keys.json"
    assert keys(daemon)[new] == "e2b" and new in done.stderr and str(file) in done.stderr
    assert got["E2B_API_URL"] == f"{daemon.url}/e2b", "the daemon tells where it listens"
    assert works(daemon, got)
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    again = on_socket()
    assert (read_by_a_shell(again.stdout), again.stderr) == (got, "")
    # The key that a shell has by now is taken again; one of E2B's own is not.
    assert read_by_a_shell(on_socket(**got).stdout) == got
    assert read_by_a_shell(on_socket(E2B_API_KEY="e2b_" + "0" * 40).stdout) == got
    assert keys(daemon).keys() - before.keys() == {new}


def test_a_kept_key_is_replaced_when_it_is_dead_or_shall_be(daemon, on_socket, tmp_path):
    before = keys(daemon).keys()
    first = read_by_a_shell(on_socket().stdout)
    [one] = keys(daemon).keys() - before
    daemon.api.ok("DELETE", f"/v1/keys/{one}")
    second = read_by_a_shell(on_socket().stdout)
    assert second != first and works(daemon, second)
    third = read_by_a_shell(on_socket("--renew").stdout)
    assert works(daemon, third) and not works(daemon, second), "the old one was taken back"
    assert read_by_a_shell(on_socket().stdout) == third
    assert len(keys(daemon).keys() - before) == 1
    # A file that others may read, or that is none, is not believed; what came of it is taken away by the fixture.
    file = tmp_path / ".config/warren/keys.json"
    file.chmod(0o644)
    assert read_by_a_shell(on_socket().stdout) != third
    assert file.stat().st_mode & 0o777 == 0o600
    for text in ("", "[1]", "{", '{"http://x": 3}', json.dumps({daemon.url: {"id": 1, "key": None}})):
        file.write_text(text)
        assert works(daemon, read_by_a_shell(on_socket().stdout)), text


def test_daemons_side_by_side_have_a_key_each(daemon, on_socket, fresh, tmp_path):
    here = read_by_a_shell(on_socket().stdout)
    there = read_by_a_shell(fresh.cli("--socket", fresh.run / "warren.sock", "env", "e2b",
                                      env={"WARREN_URL": "", "WARREN_API_KEY": "", "HOME": str(tmp_path),
                                           "XDG_CONFIG_HOME": ""}).stdout)
    assert there["E2B_API_URL"] == f"{fresh.url}/e2b" and works(fresh, there)
    assert read_by_a_shell(on_socket().stdout) == here


def test_a_team_has_a_key_of_its_own(daemon, on_socket):
    daemon.api.ok("POST", "/v1/teams", {"name": "env-team"})
    own = read_by_a_shell(on_socket().stdout)
    # The operator's key that a shell has by now opens another team's sandboxes to nobody.
    of_team = read_by_a_shell(on_socket(**own, WARREN_TEAM="env-team").stdout)
    assert of_team != own
    box = daemon.api.create(image="tiny")["id"]
    for got, sees in ((own, True), (of_team, False)):
        listed = daemon.api.with_key(got["E2B_API_KEY"]).call("GET", "/e2b/v2/sandboxes").json
        assert (box in [one["sandboxID"] for one in listed]) == sees
    daemon.api.delete(box)
    assert read_by_a_shell(on_socket(WARREN_TEAM="env-team").stdout) == of_team
    assert read_by_a_shell(on_socket().stdout) == own
    daemon.api.ok("DELETE", "/v1/teams/env-team")


def test_a_key_that_cannot_be_kept_is_told(daemon, on_socket, tmp_path):
    (tmp_path / "file").write_text("")
    done = on_socket(home=tmp_path / "file")
    assert works(daemon, read_by_a_shell(done.stdout)) and "cannot be kept" in done.stderr


@pytest.mark.parametrize("words, env", [
    ((), {"WARREN_API_KEY": "warren_" + "0" * 40}),
    (("--at", "http://127.0.0.1:1"), {}),
    (("--at", "it's; $(touch /tmp/no)"), {})])
def test_what_does_not_work_is_not_printed(daemon, words, env):
    done = daemon.cli("env", "e2b", *words, env=env)
    assert done.returncode == 1 and done.stdout == "", shlex.join(words)
    assert "--at" in done.stderr


def test_a_key_that_was_of_no_use_is_taken_back(daemon, on_socket):
    before = keys(daemon)
    done = on_socket("--at", "http://127.0.0.1:1")
    assert done.returncode == 1 and done.stdout == ""
    assert keys(daemon) == before
