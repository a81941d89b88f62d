"""`warren login`, `logout` and `context`: daemons elsewhere, and which of them a command talks to."""
import json
import os
import stat

import pytest

from harness import BUILD
from test_cli import Terminal

WRONG = "warren_" + "0" * 40


@pytest.fixture
def at_home(daemon, tmp_path):
    """The command as somebody runs it who has set no variable, with a configuration of their own."""
    alone = {"WARREN_URL": "", "WARREN_API_KEY": "", "XDG_CONFIG_HOME": str(tmp_path)}

    def run(*args, env=None, **more):
        return daemon.cli(*args, env={**alone, **(env or {})}, **more)
    run.file = tmp_path / "warren" / "contexts.json"
    run.env = alone
    return run


def login(at_home, daemon, *more):
    done = at_home("login", daemon.url, *more, stdin=daemon.key + "\n")
    assert done.returncode == 0, done.stderr
    return done


def test_login_keeps_a_key_that_works(daemon, at_home):
    done = login(at_home, daemon, "--name", "there")
    assert "there" in done.stderr and daemon.key not in done.stdout + done.stderr
    assert stat.S_IMODE(os.stat(at_home.file).st_mode) == 0o600
    assert at_home("ls").returncode == 0
    listed = at_home("context", "ls")
    assert daemon.url in listed.stdout and daemon.key not in listed.stdout
    assert [c["name"] for c in json.loads(at_home("context", "ls", "--json").stdout) if c["current"]] == ["there"]


def test_login_on_a_terminal_does_not_show_the_key(daemon, at_home):
    class AtHome(Terminal):
        def exec(self, daemon, args):
            env = {**daemon.cli_environment(), **at_home.env}
            os.execve(str(BUILD / "warren"), ["warren", *args], env)
    t = AtHome(daemon, "login", daemon.url)
    t.expect(rb"API key for .*: ")
    t.type(daemon.key.encode() + b"\n")
    t.expect(rb"logged in")
    assert t.wait() == 0
    assert daemon.key.encode() not in t.seen
    assert json.loads(at_home.file.read_text())["contexts"]["127.0.0.1"]["key"] == daemon.key


@pytest.mark.parametrize("key", [WRONG, "", "two words", "\x1b[2J"])
def test_a_key_that_does_not_work_is_not_kept(daemon, at_home, key):
    login(at_home, daemon)
    before = at_home.file.read_text()
    assert at_home("login", daemon.url, stdin=key).returncode == 1
    assert at_home.file.read_text() == before


def test_a_key_can_come_from_a_file(daemon, at_home, tmp_path):
    (tmp_path / "key").write_text(daemon.key + "\n")
    assert at_home("login", daemon.url, "--key-file", tmp_path / "key").returncode == 0
    assert at_home("ls").returncode == 0
    assert at_home("login", daemon.url, "--key-file", tmp_path / "none").returncode == 1


def test_options_come_before_variables_before_contexts(daemon, at_home):
    login(at_home, daemon, "--name", "good")
    file = json.loads(at_home.file.read_text())
    file["contexts"]["bad"] = {"url": "http://127.0.0.1:1", "key": WRONG}
    at_home.file.write_text(json.dumps(file))

    def reaches(*args, **env):
        return at_home(*args, "ls", env=env).returncode == 0
    assert reaches()
    assert not reaches(WARREN_CONTEXT="bad") and reaches("--context", "good", WARREN_CONTEXT="bad")
    assert not reaches(WARREN_URL="http://127.0.0.1:1") and reaches("--context", "good", WARREN_URL="http://127.0.0.1:1")
    assert not reaches(WARREN_API_KEY=WRONG), "the variable replaces the context's key"
    assert reaches("--context", "good", WARREN_API_KEY=WRONG), "a named context brings its own"
    assert not reaches("--url", daemon.url), "a context's key is for its own address"
    assert reaches("--context", "bad", "--key", daemon.key) is False
    assert at_home("--context", "good", "--url", daemon.url, "ls").returncode == 1
    assert at_home("context", "use", "bad").returncode == 0 and not reaches()
    assert at_home("context", "use", "nowhere").returncode == 1
    assert "context ls" in at_home("--context", "nowhere", "ls").stderr
    assert at_home("context", "use", "local").returncode == 0
    local = at_home("ls", env={"WARREN_RUN": str(daemon.run)})
    assert local.returncode == 0, local.stderr


def test_logout_forgets_the_key(daemon, at_home):
    login(at_home, daemon, "--name", "a")
    login(at_home, daemon, "--name", "b")
    assert at_home("logout").stdout == "b\n"
    assert set(json.loads(at_home.file.read_text())["contexts"]) == {"a"}
    assert at_home("logout").returncode == 2
    assert at_home("context", "rm", "a").stdout == "a\n"
    assert daemon.key not in at_home.file.read_text()


def test_a_host_that_is_known_under_another_address_needs_a_name(daemon, at_home):
    login(at_home, daemon)
    login(at_home, daemon)
    file = json.loads(at_home.file.read_text())
    file["contexts"]["127.0.0.1"]["url"] = "http://127.0.0.1:1"
    at_home.file.write_text(json.dumps(file))
    done = at_home("login", daemon.url, stdin=daemon.key)
    assert done.returncode == 1 and "--name" in done.stderr


def test_a_broken_list_is_told_of_and_not_overwritten(daemon, at_home):
    at_home.file.parent.mkdir()
    at_home.file.write_text("{")
    assert "contexts.json" in at_home("ls").stderr
    assert at_home("login", daemon.url, stdin=daemon.key).returncode == 1
    assert at_home.file.read_text() == "{"
    assert at_home("--url", daemon.url, "--key", daemon.key, "ls").returncode == 0
