"""The `warren` command, as a person and as a script use it."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from harness import BUILD, DEADLINE, until


@pytest.fixture
def warren(daemon):
    return daemon.cli


class Terminal:
    """A command on a terminal of its own: type, and wait for what should show."""

    def __init__(self, daemon, *args, rows=24, cols=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            self.exec(daemon, args)
        self.seen = b""
        self.resize(rows, cols)

    def exec(self, daemon, args):
        os.execve(str(BUILD / "warren"), ["warren", *args], daemon.cli_environment())

    def resize(self, rows, cols):
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data):
        os.write(self.fd, data)

    def expect(self, pattern, deadline=DEADLINE):
        end = time.monotonic() + deadline
        while not (match := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.seen!r}"
            if select.select([self.fd], [], [], left)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    assert re.search(pattern, self.seen), f"ended without {pattern!r}: {self.seen!r}"
        self.seen = self.seen[match.end():]
        return match

    def wait(self):
        def ended():
            if select.select([self.fd], [], [], 0)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return pid and (os.waitstatus_to_exitcode(status),)
        code = until(ended, f"the end; saw {self.seen!r}")[0]
        os.close(self.fd)
        return code


# -- run

def test_run_passes_output_and_exit_code_on(warren, api):
    before = {s["id"] for s in api.list(limit=1000)["sandboxes"]}
    done = warren("run", "--image", "tiny", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    until(lambda: {s["id"] for s in api.list(limit=1000)["sandboxes"]} <= before, "it to be deleted")


@pytest.mark.parametrize("script,status", [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137),
                                           ("kill -TERM $$", 143)])
def test_run_ends_as_its_program_did(warren, script, status):
    assert warren("run", "--image", "tiny", "--", "sh", "-c", script).returncode == status


def test_run_tells_its_own_failures_apart(warren):
    assert warren("run", "--image", "tiny", "--", "no-such-program").returncode == 127
    assert warren("run", "--image", "tiny", "--", "/etc/passwd").returncode == 126
    done = warren("run", "--image", "no-such-image", "--", "true")
    assert done.returncode == 125 and "no-such-image" in done.stderr


def test_run_pipes_stdin(warren):
    done = warren("run", "--image", "tiny", "--", "wc", "-c", stdin="x" * 300_000)
    assert done.stdout.strip() == "300000"
    done = warren("run", "--image", "tiny", "--", "cat", stdin=b"\x00\xff\xfe\n", text=False)
    assert done.stdout == b"\x00\xff\xfe\n"


def test_run_passes_megabytes_through_a_pipe(warren):
    data = os.urandom(1 << 20) * 8
    done = warren("run", "--image", "tiny", "--", "cat", stdin=data, text=False)
    assert done.returncode == 0 and done.stdout == data


def test_run_on_the_base_image(warren):
    done = warren("run", "--", "python3", "-c", "print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


def test_run_with_a_terminal(daemon):
    t = Terminal(daemon, "run", "--image", "tiny", "-it", "--", "sh", rows=33, cols=101)
    t.expect(rb"# ")
    t.type(b"stty size; echo o''k\n")
    t.expect(rb"33 101")
    t.expect(rb"ok")
    t.resize(20, 70)
    t.type(b"sleep 0.2; stty size\n")
    t.expect(rb"20 70")
    t.type(b"exit 5\n")
    assert t.wait() == 5


def left_running(api, before):
    """The sandbox that a `run` left behind; its id."""
    return until(lambda: [s["id"] for s in api.list(limit=1000)["sandboxes"] if s["id"] not in before], "the sandbox")[0]


@pytest.mark.parametrize("end", [b"\x1d", b"\x10\x11", None], ids=["Ctrl-]", "Ctrl-P Ctrl-Q", "window closed"])
def test_who_leaves_a_terminal_leaves_the_program_running(daemon, api, end):
    before = {s["id"] for s in api.list(limit=1000)["sandboxes"]}
    t = Terminal(daemon, "run", "--image", "tiny", "-it", "--", "sh")
    t.expect(rb"# ")
    t.type(b"mine=" + (b"lost" if end else b"kept") + b"; echo o''k\n")
    t.expect(rb"ok")
    if end:
        t.type(b"mine=kept\n" + end)  # what is typed before the keys that leave is passed on, in one piece too
        t.expect(rb"warren attach \S+ 1")
        assert t.wait() == 0
    else:
        os.close(t.fd)
        assert os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]) == 128 + signal.SIGHUP
    box = left_running(api, before)
    assert api.get(box)["idle_timeout_s"] is None
    t = Terminal(daemon, "attach", box)
    t.expect(rb"attached")
    t.type(b"echo $mine-it; exit 3\n")
    t.expect(rb"kept-it")
    assert t.wait() == 3
    api.delete(box)


def test_a_terminal_that_loses_the_daemon_keeps_its_sandbox(fresh):
    t = Terminal(fresh, "run", "--image", "tiny", "-it", "--", "sh")
    t.expect(rb"# ")
    t.type(b"mine=kept; echo o''k\n")
    t.expect(rb"ok")
    [box] = fresh.api.list()["sandboxes"]
    assert box["idle_timeout_s"] is None, "whoever comes back may be late"
    fresh.kill()
    t.expect(rb"warren attach \S+ 1", 4 * DEADLINE)  # it looks for half a minute
    t.expect(rb"kept sandbox \S+")
    assert t.wait() == 125
    fresh.start()
    t = Terminal(fresh, "attach", box["id"])
    t.expect(rb"attached")
    t.type(b"echo $mine-it; exit 3\n")
    t.expect(rb"kept-it")
    assert t.wait() == 3


@pytest.mark.parametrize("how", [["shell"], ["exec", "-it"]], ids=["shell", "exec"])
def test_a_closed_window_ends_no_shell(daemon, api, tiny, how):
    t = Terminal(daemon, *how, tiny, *([] if how == ["shell"] else ["--", "sh"]))
    t.expect(rb"# ")
    t.type(b"trap 'echo gone > /tmp/gone' HUP; echo $$ > /tmp/pid; echo o''k\n")
    t.expect(rb"ok")
    os.close(t.fd)
    assert os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]) == 128 + signal.SIGHUP
    assert api.out(tiny, "kill -0 $(cat /tmp/pid) && ls /tmp").split() == ["pid"]


def test_an_interrupt_reaches_the_program_and_the_sandbox_goes(daemon, api):
    before = {s["id"] for s in api.list(limit=1000)["sandboxes"]}
    p = subprocess.Popen([str(BUILD / "warren"), "run", "--image", "tiny", "--", "sh", "-c",
                          "trap 'echo caught; exit 9' INT; echo up; while :; do sleep 0.05; done"],
                         stdout=subprocess.PIPE, env=daemon.cli_environment(), text=True,
                         stdin=subprocess.DEVNULL)
    assert p.stdout.readline() == "up\n"
    p.send_signal(signal.SIGINT)
    assert p.stdout.readline() == "caught\n"
    assert p.wait(DEADLINE) == 9
    until(lambda: {s["id"] for s in api.list(limit=1000)["sandboxes"]} <= before)


# -- the rest of a life

def test_create_exec_ps_logs_stop_start_rm(warren, api):
    who = warren("create", "--image", "tiny", "--name", "by-cli").stdout.strip()
    assert re.fullmatch("[a-z][a-z0-9]{19}", who)
    try:
        assert "by-cli" in warren("ls").stdout
        done = warren("exec", "by-cli", "--", "sh", "-c", "echo hello; exit 3")
        assert (done.returncode, done.stdout) == (3, "hello\n")
        n = api.start(who, "echo logged; exec sleep 600")["process"]
        until(lambda: api.process(who, n)["output_bytes"])
        assert "sleep 600" in warren("ps", "by-cli").stdout or "logged" in warren("ps", "by-cli").stdout
        assert "logged" in warren("logs", "by-cli").stdout
        assert warren("stop", "by-cli").returncode == 0
        assert api.get(who)["state"] == "stopped"
        assert warren("start", "by-cli").returncode == 0
        assert api.get(who)["state"] == "running"
    finally:
        assert warren("rm", "by-cli").returncode == 1  # it runs; that needs a word more
        assert warren("rm", "-f", "by-cli").returncode == 0
    assert api.call("GET", f"/v1/sandboxes/{who}").status == 404


def test_shell(daemon, api, tiny):
    t = Terminal(daemon, "shell", tiny)
    t.expect(rb"[#$] ")
    t.type(b"hostname\n")
    t.expect(tiny.encode())
    t.type(b"exit\n")
    assert t.wait() == 0


def test_json_everywhere(warren, api, tiny):
    for args in (["ls"], ["get", tiny], ["ps", tiny], ["image", "ls"], ["key", "ls"], ["doctor"], ["version"]):
        done = warren(*args, "--json")
        assert done.returncode == 0, (args, done.stderr)
        json.loads(done.stdout)
    made = json.loads(warren("create", "--image", "tiny", "--json").stdout)
    assert made["state"] == "running"
    done = warren("rm", "-f", made["id"], "--json")
    assert done.returncode == 0
    ran = warren("exec", tiny, "--json", "--", "echo", "x")
    assert "x" in ran.stdout and all(json.loads(line) for line in [ran.stdout] if line.strip())


def test_help_shows_examples(warren):
    overview = warren("--help")
    assert overview.returncode == 0
    listed = overview.stdout.split("COMMANDS")[1].split("OPTIONS OF")[0].strip().splitlines()
    assert len(listed) > 50 and all(re.match(r" *[a-z][a-z0-9 -]*?  +[A-Z]", line) for line in listed), listed
    for command in "run create ls exec shell ps logs stop start rm doctor".split():
        assert re.search(rf"\b{command}\b", overview.stdout), command
        page = warren(command, "--help")
        assert page.returncode == 0 and "warren " + command in page.stdout, command
        assert re.search("example", page.stdout, re.I), command


def test_help_on_several_commands_and_on_several_lines(warren):
    group = warren("help", "net")
    assert group.returncode == 0 and "warren net log" in group.stdout and "warren net set" in group.stdout
    assert group.stdout == warren("net").stdout
    wrong = warren("help", "net", "lgo")
    assert wrong.returncode == 2 and "net lgo" in wrong.stderr and "warren net log" in wrong.stderr
    page = warren("help", "forward").stdout.split("EXAMPLES")[1].split("EXIT STATUS")[0]
    assert re.search(r"^ +\$ warren forward box 5432 &\n +\$ psql ", page, re.M), page


def test_completion(warren):
    for shell in ("bash", "zsh", "fish"):
        done = warren("completion", shell)
        assert done.returncode == 0 and "warren" in done.stdout, shell
    script = warren("completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, timeout=30).returncode == 0


def test_doctor(warren):
    done = warren("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("cgroup", "memory", "cpu", "pids"):
        assert word in done.stdout.lower(), word


def test_doctor_says_which_walls_are_up(warren):
    done = warren("doctor", "--json")
    walls = {w["name"]: w for w in json.loads(done.stdout)["walls"]}
    assert walls.keys() >= {"users", "system calls", "network", "clocks", "mitigations", "smt", "ksm", "swap", "kernel age"}
    assert walls["users"]["status"] == walls["network"]["status"] == "ok"
    for wall in walls.values():
        assert wall["detail"] and (wall["status"] == "ok" or wall["fix"]), wall


def test_mistakes_are_explained(warren, tiny):
    done = warren("creat")
    assert done.returncode == 2 and "'create'" in done.stderr
    done = warren("ls", "--no-such-option")
    assert done.returncode == 2 and "no-such-option" in done.stderr
    done = warren("exec", "no-such-sandbox", "--", "true")
    assert done.returncode != 0 and "no-such-sandbox" in done.stderr
    done = warren("ls", env={"WARREN_API_KEY": "wrong-wrong-wrong-wrong"})
    assert done.returncode == 1 and "key" in done.stderr.lower()
    done = warren("ls", env={"WARREN_URL": "http://127.0.0.1:1"})
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr


def test_a_command_line_in_one_word_is_told_of_the_shell(warren, tiny):
    for args in (["exec", tiny, "ls -la"], ["exec", "-d", tiny, "ls -la"], ["run", "--image", "tiny", "ls -la"]):
        done = warren(*args)
        assert done.returncode == 127 and "sh -c 'ls -la'" in done.stderr, done.stderr
    assert "sh -c" not in warren("exec", tiny, "no-such-program").stderr


def test_missing_and_unexpected_words_are_named(warren):
    for args, words in ((["get"], "missing SANDBOX"), (["exec", "box"], "missing PROGRAM"), (["image", "tag", "a"], "missing NAME"),
                        (["image", "build", "-t", "x"], "missing PATH"), (["shell", "box", "ls"], "unexpected word 'ls'"),
                        (["ls", "box"], "unexpected word 'box'")):
        assert f"warren: {words}" in warren(*args).stderr, args


def test_a_refused_value_is_told_of_as_it_was_typed(warren, tiny):
    for args, words in ((["create", "--memory", "1k"], "--memory must be from 16m to "), (["run", "--disk", "1", "--", "true"], "--disk must be from "),
                        (["create", "--pids", "1"], "--pids must be a number from "), (["update", "--memory", "1k", tiny], "--memory must be from 16m to "),
                        (["create", "--idle-timeout", "99999d"], "--idle-timeout must be from 0 to 3660d")):
        done = warren(*args)
        assert words in done.stderr and "_mb" not in done.stderr and "_s'" not in done.stderr, (args, done.stderr)


def test_the_bare_word_shows_one_screen(daemon):
    done = daemon.cli()
    assert done.returncode == 2 and len(done.stderr.splitlines()) < 40
    assert re.search(r"^Keep a sandbox .*\n  create +Make a sandbox", done.stderr, re.M)


# -- what people's fingers know from other tools

def test_run_detached_leaves_the_program_running(warren, api):
    who = warren("run", "-d", "--image", "tiny", "--name", "left", "-e", "N=5", "--network", "none", "--", "sh", "-c",
                 "sleep 1; exit $N").stdout.strip()
    try:
        assert api.get(who)["name"] == "left" and api.get(who)["idle_timeout_s"] is None
        assert who in warren("ps", "-q").stdout.split()
        assert warren("wait", "left").stdout == "5\n" == warren("wait", "left", "1").stdout
        assert json.loads(warren("wait", "--json", "left").stdout)["exit_code"] == 5
        assert warren("rename", "left", "right").stdout.strip() == who == warren("restart", "right").stdout.strip()
        assert api.get(who)["state"] == "running"
        assert "COMMAND" in warren("top", "right").stdout
        warren("stop", "right")
        assert who not in warren("ps", "-q").stdout and who in warren("ps", "-aq").stdout
        assert warren("restart", "right").returncode == 0 and api.get(who)["state"] == "running"
    finally:
        api.delete(who)
    before = api.list(limit=1000)["sandboxes"]
    assert warren("run", "-d", "--image", "tiny", "--", "no-such-program").returncode == 127
    assert api.list(limit=1000)["sandboxes"] == before
    assert warren("run", "--rm", "--image", "tiny", "--", "echo", "x").stdout == "x\n"
    assert "does not go" in warren("run", "--rm", "-d", "--image", "tiny", "--", "true").stderr


def test_images_by_the_short_words(warren, tiny_tar, tmp_path):
    assert warren("image", "import", tiny_tar, "--name", "short").returncode == 0
    (tmp_path / "Dockerfile").write_text("FROM short\nENV A=1\n")
    assert warren("build", "-t", "shorter", str(tmp_path)).returncode == 0
    assert warren("tag", "shorter", "shortest").returncode == 0
    assert "shortest" in warren("images").stdout and warren("history", "shortest").returncode == 0
    assert warren("rmi", "shortest", "shorter", "short").returncode == 0


@pytest.mark.parametrize("args,words", [
    (["run", "-p", "80:80", "true"], "warren forward"), (["run", "--publish", "80", "true"], "warren forward"),
    (["ls", "--format", "x"], "--json"), (["ls", "--filter", "x=y"], "--metadata"),
    (["run", "-v", "./here:/there", "true"], "warren cp"), (["create", "--network", "host"], "none, agents, open")])
def test_what_is_done_otherwise_here_says_how(warren, args, words):
    done = warren(*args)
    assert done.returncode in (1, 2, 125) and words in done.stderr, done.stderr


def test_the_admin_socket_needs_no_key(daemon):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WARREN_")}
    env["WARREN_RUN"] = str(daemon.run)
    done = subprocess.run([str(BUILD / "warren"), "ls"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_images_by_hand(warren, tiny_tar):
    done = warren("image", "import", tiny_tar, "--name", "by-hand")
    assert done.returncode == 0, done.stderr
    assert "by-hand" in warren("image", "ls").stdout
    assert warren("run", "--image", "by-hand", "--", "echo", "x").stdout == "x\n"
    assert warren("image", "rm", "by-hand").returncode == 0


def test_output_cannot_drive_the_terminal(daemon, tiny):
    """A title or clipboard sequence from inside is shown, not obeyed; a file gets it untouched."""
    evil = "printf '\\033]0;owned\\007\\033]52;c;aGk=\\007plain\\n'"
    t = Terminal(daemon, "exec", tiny, "--", "sh", "-c", evil)
    before = t.expect(rb"(?s)(.*)plain").group(1)
    t.wait()
    assert b"owned" in before and b"\x1b]" not in before + t.seen
    assert "\x1b]0;owned\x07" in daemon.cli("exec", tiny, "--", "sh", "-c", evil).stdout


def test_a_reader_that_goes_away(daemon, tiny):
    """`warren ... | head -1` ends, and leaves nothing waiting."""
    done = subprocess.run(f"{BUILD}/warren exec {tiny} -- yes | head -1", shell=True, text=True,
                          capture_output=True, timeout=60, env=daemon.cli_environment())
    assert done.stdout == "y\n"


def test_run_goes_on_through_a_restart_of_the_daemon(fresh):
    p = subprocess.Popen([str(BUILD / "warren"), "run", "--image", "tiny", "--", "sh", "-c",
                          "echo a; sleep 2; echo b; exit 6"], stdout=subprocess.PIPE, text=True,
                         env=fresh.cli_environment(), stdin=subprocess.DEVNULL)
    assert p.stdout.readline() == "a\n"
    fresh.restart()
    assert p.stdout.read() == "b\n"
    assert p.wait(DEADLINE) == 6
