"""What the tests stand on: a daemon of their own, a client for its API, and a look at what is left.

Waiting is for an event or a condition with a deadline, never for a time to pass.
"""
import base64
import contextlib
import functools
import hashlib
import http.client
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("WARREN_BUILD", ROOT / "build"))
# Where the keeper is: it has no threads, so a ThreadSanitizer build borrows the plain one.
KEEPER_BUILD = ROOT / "build" if "tsan" in BUILD.name else BUILD
KEY = "test_" + "0123456789abcdef" * 2 + "01234567"
DEADLINE = float(os.environ.get("WARREN_TEST_DEADLINE", "30"))  # for what takes milliseconds


def until(condition, what="condition", deadline=DEADLINE):
    """The condition's value as soon as it is true; fails when the deadline passes."""
    end = time.monotonic() + deadline
    pause = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline} s in vain for {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def counting(path, every):
    """A shell's program that counts in memory and shows its number in a file, which is whole whenever it is looked at,
    in a checkpoint too."""
    return f"i=0; while :; do i=$((i+1)); echo $i > {path}.new; mv {path}.new {path}; sleep {every}; done"


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]

    def __repr__(self):
        return f"<{self.status} {self.body[:600]!r}>"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Stream:
    """An answer of one JSON object a line. Closing it is a client that goes away."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response

    def __iter__(self):
        return self

    def __next__(self):
        line = self.response.readline()
        if not line:
            raise StopIteration
        return json.loads(line)

    def until(self, **want):
        """The first event that has these members."""
        seen = []
        for event in self:
            if all(event.get(k) == v for k, v in want.items()):
                return event
            seen = [*seen, str(event)[:500]][-5:]
        raise AssertionError(f"the stream ended without {want}; its last events: {seen}")

    def close(self):
        # The response holds the socket too; a half-read one would keep it open.
        with contextlib.suppress(OSError, AttributeError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.response.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def data_of(event):
    return base64.b64decode(event["data_b64"]) if "data_b64" in event else event["data"].encode()


def output_of(events, kind="stdout"):
    return b"".join(data_of(e) for e in events if e["type"] == kind)


class Api:
    """The native API. `call` answers whatever came; `ok` insists on success."""

    def __init__(self, connect, key=KEY):
        self.connect, self.key = connect, key

    def with_key(self, key):
        return Api(self.connect, key)

    def headers(self, extra=None):
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        headers.update(extra or {})
        return headers

    def open(self, method, path, body=None, headers=None, timeout=DEADLINE * 2):
        connection = self.connect(timeout)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        connection.request(method, path, body=body, headers=self.headers(headers))
        return connection, connection.getresponse()

    def call(self, method, path, body=None, headers=None, timeout=DEADLINE * 2):
        connection, response = self.open(method, path, body, headers, timeout)
        with contextlib.closing(connection):
            return Reply(response.status, response.headers, response.read())

    def ok(self, method, path, body=None, **kwargs):
        reply = self.call(method, path, body, **kwargs)
        assert 200 <= reply.status < 300, f"{method} {path}: {reply}"
        return reply.json if reply.body else None

    def refused(self, status, code, method, path, body=None, **kwargs):
        """The call fails in just this way; answers the error object."""
        reply = self.call(method, path, body, **kwargs)
        assert (reply.status, reply.code) == (status, code), f"{method} {path}: {reply}"
        error = reply.json["error"]
        assert error["message"] and error["request_id"] == reply.headers["X-Request-Id"]
        return error

    def stream(self, method, path, body=None, timeout=DEADLINE * 2):
        connection, response = self.open(
            method, path, body, {"Accept": "application/x-ndjson"}, timeout)
        if response.status != 200:
            reply = Reply(response.status, response.headers, response.read())
            connection.close()
            raise AssertionError(f"{method} {path}: {reply}")
        return Stream(connection, response)

    # -- sandboxes

    def create(self, **spec):
        return self.ok("POST", "/v1/sandboxes", spec)

    def create_with(self, path, text, **spec):
        """A sandbox that has a file; its id."""
        sandbox = self.create(**spec)["id"]
        self.ok("PUT", f"/v1/sandboxes/{sandbox}/files?path={path}", text)
        return sandbox

    def get(self, who):
        return self.ok("GET", f"/v1/sandboxes/{who}")

    def delete(self, who):
        return self.ok("DELETE", f"/v1/sandboxes/{who}")

    def list(self, **query):
        text = urllib.parse.urlencode({k.replace("__", "."): v for k, v in query.items()})
        return self.ok("GET", f"/v1/sandboxes?{text}")

    def usage(self, who):
        return self.ok("GET", f"/v1/sandboxes/{who}/usage")

    # -- commands

    def exec(self, who, command, timeout=DEADLINE * 2, **more):
        """Run and wait: a text goes to the shell, a list is argv."""
        more["shell" if isinstance(command, str) else "argv"] = command
        return self.ok("POST", f"/v1/sandboxes/{who}/exec", more, timeout=timeout)

    def out(self, who, command, **more):
        """What it printed, having ended well."""
        result = self.exec(who, command, **more)
        assert result["exit_code"] == 0, result
        return result["stdout"]

    def start(self, who, command, **more):
        more["shell" if isinstance(command, str) else "argv"] = command
        return self.ok("POST", f"/v1/sandboxes/{who}/processes", more)

    def process(self, who, n):
        return self.ok("GET", f"/v1/sandboxes/{who}/processes/{n}")

    def wait(self, who, n, timeout=DEADLINE * 2):
        return self.ok("GET", f"/v1/sandboxes/{who}/processes/{n}/wait", timeout=timeout)

    def output(self, who, n, since=0, follow=True, timeout=DEADLINE * 2):
        return self.stream("GET", f"/v1/sandboxes/{who}/processes/{n}/output?since={since}"
                           f"&follow={'true' if follow else 'false'}", timeout=timeout)

    def stdin(self, who, n, data, eof=False):
        return self.ok("POST", f"/v1/sandboxes/{who}/processes/{n}/stdin" +
                       ("?eof=true" if eof else ""), data,
                       headers={"Content-Type": "application/octet-stream"})

    def signal(self, who, n, sig, scope="process"):
        return self.ok("POST", f"/v1/sandboxes/{who}/processes/{n}/signal",
                       {"signal": sig, "scope": scope})

    # -- the rest

    def import_image(self, name, path, public=True, timeout=300):
        with open(path, "rb") as f:
            return self.ok("PUT", f"/v1/images/{urllib.parse.quote(name, safe='')}" +
                           ("?public=true" if public else ""), f, timeout=timeout,
                           headers={"Content-Length": str(os.path.getsize(path))})

    def events(self, since=0, sandbox=None, limit=1000):
        query = f"since={since}&limit={limit}" + (f"&sandbox={sandbox}" if sandbox else "")
        return self.ok("GET", f"/v1/events?{query}")

    def wait_event(self, kind, sandbox, since=0, timeout=DEADLINE):
        with self.stream("GET", f"/v1/events?since={since}&sandbox={sandbox}&follow=true",
                         timeout=timeout) as stream:
            return stream.until(type=kind)


GIVEN = set()  # ports
HELD = []  # the socket that stands for a number


def free_port():
    """A port that nobody has. It is not of those that the kernel gives to whoever asks for any, so that it is still free
    when a daemon that was killed comes back to it."""
    for _ in range(1000):
        port = random.randrange(10240, 32768)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            if port not in GIVEN:
                GIVEN.add(port)
                return port
    raise AssertionError("no free port")


def cached(name, key, make):
    """A directory that make(path) fills, once for each key (bytes) on this machine."""
    top = pathlib.Path(os.environ.get("WARREN_CACHE", "/var/cache/warren"))
    at = top / f"{name}-{hashlib.sha256(key).hexdigest()[:16]}"
    if not at.exists():
        top.mkdir(parents=True, exist_ok=True)
        part = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}-", dir=top))
        make(part)
        with contextlib.suppress(OSError):  # another was faster
            part.rename(at)
        shutil.rmtree(part, ignore_errors=True)
    return at


@functools.cache
def block():
    """A number below 25 that no other run on this machine has while this one lives."""
    for n in range(25):
        s = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            s.bind(f"\0warren-tests-{n}")
            HELD.append(s)
            return n
        s.close()
    raise AssertionError("too many runs at once")


def own_address(n):
    """One of documentation's, 1 to 9: this run's own, for own_addresses."""
    return f"198.51.100.{block() * 10 + n}"


@contextlib.contextmanager
def own_addresses(*addresses):
    """They are this machine's, on loopback, until the end of the block. A run that was killed may have left them."""
    try:
        for address in addresses:
            subprocess.run(["ip", "addr", "replace", f"{address}/32", "dev", "lo"], check=True, timeout=DEADLINE)
        yield
    finally:
        for address in addresses:
            subprocess.run(["ip", "addr", "del", f"{address}/32", "dev", "lo"], check=False, timeout=DEADLINE)


def kill_all(pids, shuffle):
    shuffle(pids)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Daemon:
    """One instance in directories of its own; survives being killed, as the sandboxes do."""

    def __init__(self, *args, key=KEY, env=None, below="", domain=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="wt-", dir="/tmp"))
        self.dir.chmod(0o755)
        self.reports = self.dir / "reports"  # a sanitizer's; warrend writes there without root
        self.reports.mkdir()
        self.reports.chmod(0o1777)
        place = self.dir / below  # with `below`: a directory that only root may enter
        if below:
            place.mkdir(mode=0o700)
        self.data, self.run = place / "data", place / "run"
        self.cgroup = self.dir.name
        self.port = free_port()
        self.args = [str(a) for a in args]
        self.key, self.env = key, env or {}
        self.domain = domain or "localhost"  # of previews; a name of its own comes with TLS
        if domain:
            self.tls_port = free_port()
            self.args += self.certify()
        self.process = None
        self.api = Api(lambda t: http.client.HTTPConnection("127.0.0.1", self.port, timeout=t), key)
        self.admin = Api(lambda t: UnixConnection(self.run / "warren.sock", t), None)
        try:
            self.start()
        except BaseException:
            if self.process:
                self.stop()
                self.teardown()
            shutil.rmtree(self.dir, ignore_errors=True)
            raise

    def certify(self):
        """A certificate for every name under the domain, and the options that use it."""
        self.cert, key = self.dir / "cert.pem", self.dir / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", f"/CN={self.domain}", "-keyout", key, "-out", self.cert,
                        "-addext", f"subjectAltName=DNS:{self.domain},DNS:*.{self.domain},IP:127.0.0.1"],
                       check=True, capture_output=True)
        return ["--preview-domain", self.domain, "--tls-listen", f"127.0.0.1:{self.tls_port}",
                "--tls-cert", str(self.cert), "--tls-key", str(key)]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("WARREN_")}
        env.update({"WARREN_API_KEY": self.key} if self.key else {})
        env["WARREN_LIBEXEC"] = str(KEEPER_BUILD)
        env["WARREN_SHARE_VOLUMES"] = "always"  # an option wins: test_volume_walls has the default
        sanitizer = f"log_path={self.reports}/sanitizer:abort_on_error=0:exitcode=66"
        env["ASAN_OPTIONS"] = sanitizer + ":detect_leaks=1:detect_stack_use_after_return=0"
        env["UBSAN_OPTIONS"] = sanitizer + ":print_stacktrace=1"
        env["TSAN_OPTIONS"] = sanitizer + ":second_deadlock_stack=1:die_after_fork=0"
        env["WARREN_DEFAULT_REGISTRY"] = "none"  # tests ask nobody but this machine
        env.update(self.env)
        return {name: value for name, value in env.items() if value is not None}

    def command(self, program, *args):
        # ThreadSanitizer needs the address space that it expects.
        prefix = ["setarch", "-R"] if "tsan" in BUILD.name else []
        where = KEEPER_BUILD if program == "warren-keeper" else BUILD
        return [*prefix, str(where / program), *args]

    def start(self, wait=True):
        log = open(self.dir / "log", "ab")
        self.process = subprocess.Popen(
            self.command("warrend", "--listen", f"127.0.0.1:{self.port}", "--data", str(self.data),
                         "--run", str(self.run), "--cgroup", self.cgroup, *self.args),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(),
            start_new_session=True)
        log.close()
        if wait:
            self.wait_healthy()

    def wait_healthy(self):
        def healthy():
            if self.process.poll() is not None:
                raise AssertionError(f"warrend ended ({self.process.returncode}):\n{self.log()}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                reply = self.api.call("GET", "/v1/health", timeout=DEADLINE)
                return reply.status == 200 and reply.json["keeper"]
        until(healthy, "the daemon", DEADLINE * 2)

    def log(self):
        return (self.dir / "log").read_text(errors="replace")[-6000:]

    def pids(self, program):
        """This instance's processes of that name, found by the directories they were given."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    argv = (entry / "cmdline").read_bytes().split(b"\0")
                    if (os.path.basename(argv[0]) == program.encode()
                            and str(self.run).encode() in argv):
                        found.append(int(entry.name))
        return sorted(found)

    def kill(self, sig=signal.SIGKILL):
        """The daemon alone: the keeper and the sandboxes go on."""
        self.process.send_signal(sig)
        self.process.wait(DEADLINE)

    def keepers(self):
        """Pids of the keeper, of its starter and of its sweeper: those that live."""
        found = []
        for pid in self.pids("warren-keeper"):
            with contextlib.suppress(OSError, KeyError):
                status = dict(line.split(":\t", 1) for line in
                              pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
                # A cell's first process looks the same until it becomes warren-init.
                if len(status["NSpid"].split()) == 1:
                    found.append(pid)
        return found

    def keeper(self):
        """Pid of the keeper itself."""
        def look():
            with contextlib.suppress(OSError):  # one has just ended
                pids = self.keepers()
                parents = {pid: int(re.search(r"^PPid:\t(\d+)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])
                           for pid in pids}
                return next((pid for pid in pids if parents[pid] not in pids), None)  # the others are its children
        return until(look, "a keeper")

    def starter(self):
        """Pid of the process beside the keeper that starts CRIU."""
        def look():
            with contextlib.suppress(OSError):
                return next((pid for pid in self.keepers() if pathlib.Path(f"/proc/{pid}/comm").read_text() == "keeper-starter\n"), None)
        return until(look, "the keeper's starter")

    def pool(self, *below):
        """A place in the storage, seen with the keeper's eyes: nobody else has it mounted."""
        return pathlib.Path(f"/proc/{self.keeper()}/root{self.data}/pool", *below)

    def stored(self, kind):
        """Names of what lies in the storage, in a directory that may not be there before it is needed."""
        def look():
            with contextlib.suppress(OSError):  # that keeper has just ended
                return [{p.name for p in self.pool(kind).iterdir()} if kind in os.listdir(self.pool()) else set()]
        return until(look, "a look into the storage")[0]

    def launcher(self):
        return [p for p in self.pids("warrend") if p != self.process.pid]

    def kill_keeper(self, shuffle=lambda pids: None):
        """The keeper and its sweeper; the launcher starts them again."""
        kill_all(self.keepers(), shuffle)

    def kill_everything(self, shuffle=lambda pids: None):
        """All of our own processes, in any order; the sandboxes alone are left."""
        kill_all([self.process.pid, *self.launcher(), *self.keepers(),
                  *self.pids("warren-broker")], shuffle)
        self.process.wait(DEADLINE)

    def stop(self):
        """End the daemon as an operator would; it must end well."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(DEADLINE)

    def restart(self):
        if self.process.poll() is None:
            self.kill()
        self.start()

    def teardown(self):
        return subprocess.run(
            self.command("warren-keeper", "--data", str(self.data), "--run", str(self.run),
                         "--cgroup", self.cgroup, "--teardown"),
            env=self.environment(), capture_output=True, text=True, timeout=DEADLINE * 4)

    def close(self):
        """Stop, tear down, and insist that nothing of this instance is left on the machine."""
        code = self.stop()
        torn = self.teardown()
        left = until_clean(self)
        reports = [p.read_text(errors="replace") for p in self.reports.glob("*")]
        log = self.log()
        shutil.rmtree(self.dir, ignore_errors=True)
        assert not reports, "sanitizer reports:\n" + "\n".join(r[:4000] for r in reports[:3])
        assert code == 0, f"warrend ended with {code}:\n{log}"
        assert torn.returncode == 0, f"teardown failed: {torn.stderr}"
        assert not left, f"left behind: {left}\n{log}"

    def cli(self, *args, stdin=None, timeout=DEADLINE * 2, env=None, text=True):
        """The `warren` command against this instance."""
        environment = self.cli_environment()
        environment.update(env or {})
        return subprocess.run([str(BUILD / "warren"), *map(str, args)], input=stdin, text=text,
                              capture_output=True, timeout=timeout, env=environment)

    def cli_environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("WARREN_")}
        env.update({"WARREN_URL": self.url, "WARREN_API_KEY": self.key, "TERM": "xterm"})
        return env


# -- what an instance leaves on the machine

@contextlib.contextmanager
def running(*args, images=None, **more):
    """A daemon with images, by default `base`, until the end of the block; it may be killed in there."""
    d = Daemon(*args, **more)
    try:
        for name, tar in (images or {"base": base_image()}).items():
            d.api.import_image(name, tar)
        yield d
    finally:
        if d.process.poll() is not None:
            d.start()
        d.close()


def processes_of(daemon):
    """Processes that run its programs, or whose control group or root is one of its own."""
    needle = str(daemon.dir)
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            cmdline = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            mounts = (entry / "mountinfo").read_text(errors="replace")
            root = mounts.splitlines()[0] if mounts else ""
            if needle in cmdline or needle in root:
                found.append(f"{entry.name} {cmdline.strip()[:100]}")
    return found


def mounts_of(daemon):
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                for line in (entry / "mountinfo").read_text(errors="replace").splitlines():
                    if str(daemon.dir) in line:
                        found.add(line)
    return sorted(found)


def loops_of(daemon):
    found = []
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith(str(daemon.dir)):
                found.append(path.parts[3])
    return found


def cgroups_of(daemon):
    return [os.path.join(top, d) for top, dirs, _ in os.walk("/sys/fs/cgroup") for d in dirs
            if d == getattr(daemon, "cgroup", None)]


def cells_in_cgroups(ids):
    """Control groups that carry one of these sandbox ids."""
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(top, d) for d in dirs if any(i in d for i in ids)]
    return found


def leftovers(daemon):
    left = {"processes": processes_of(daemon), "mounts": mounts_of(daemon),
            "loops": loops_of(daemon), "cgroups": cgroups_of(daemon)}
    return {k: v for k, v in left.items() if v}


def until_clean(daemon, deadline=DEADLINE):
    """What is left once it had a moment: the kernel frees a mount namespace a little later."""
    with contextlib.suppress(AssertionError):
        until(lambda: not leftovers(daemon), "a clean machine", deadline)
    return leftovers(daemon)


# -- images

def base_image():
    """The path of the base image's tar, made by `./dev test` beforehand (or now)."""
    out = subprocess.run([str(ROOT / "images/build"), "base"], stdout=subprocess.PIPE, text=True,
                         timeout=600)
    assert out.returncode == 0, "the base image could not be made"
    return pathlib.Path(out.stdout.strip())


def tiny_image(path, home=1000):
    """A root filesystem of one program, imported in milliseconds. `home`: whose /home/user is; 0: root's, and there is
    no user; None: there is neither, as in most images."""
    busybox = pathlib.Path("/bin/busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split()
    files = {
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" + ("user:x:1000:1000::/home/user:/bin/sh\n" if home else ""),
        "etc/group": "root:x:0:\n" + ("user:x:1000:\n" if home else ""),
        "etc/hosts": "127.0.0.1 localhost\n",
    }
    with tarfile.open(path, "w") as tar:
        def add(name, kind, **more):
            info = tarfile.TarInfo(name)
            info.type = kind
            info.mode = more.pop("mode", 0o755)
            data = more.pop("data", b"")
            info.size = len(data)
            for k, v in more.items():
                setattr(info, k, v)
            tar.addfile(info, io.BytesIO(data))
        for d in ("bin", "etc", "proc", "sys", "dev", "run", "root", "home", "var"):
            add(d, tarfile.DIRTYPE, mode=0o700 if d == "root" else 0o755)
        add("tmp", tarfile.DIRTYPE, mode=0o1777)
        if home is not None:
            add("home/user", tarfile.DIRTYPE, uid=home, gid=home)
        for name, text in files.items():
            add(name, tarfile.REGTYPE, mode=0o644, data=text.encode())
        add("bin/busybox", tarfile.REGTYPE, data=busybox.read_bytes())
        for applet in applets:
            if applet != "busybox":
                add(f"bin/{applet}", tarfile.SYMTYPE, linkname="busybox")
    return path
