"""The programs that people use, inside, against real servers: what the rules allow works, the rest fails at once and says why."""
import json
import pathlib
import shlex

import pytest

from harness import until

RULES = ["allow good.test 80,443", "allow *.good.test"]
SSH = "ssh -i /home/user/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
IDENTITY = "git config --global user.name a && git config --global user.email a@good.test"
# A proxy that does not exist, everywhere a program may look for one: what heeds it fails.
PROXIED = {k: "http://192.0.2.9:3128" for k in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}


@pytest.fixture(scope="module")
def api(net):
    return net.api


@pytest.fixture(scope="module")
def box(api, world):
    """A sandbox that may reach one domain, trusts its CA, and has its repositories."""
    sandbox = api.create(network={"rules": RULES}, user="user")["id"]

    def put(path, data, mode="0644", user="root"):
        api.ok("PUT", f"/v1/sandboxes/{sandbox}/files?path={path}&mode={mode}&user={user}", data)
    put("/usr/local/share/ca-certificates/test.crt", (world.dir / "ca.pem").read_text())
    put("/etc/apt/sources.list", "deb [trusted=yes] http://apt.good.test/apt ./\n")
    put("/home/user/key", (world.dir / "client").read_text(), "0600", "user")
    put("/home/user/.npmrc", "registry=https://npm.good.test/\nfetch-retries=0\nupdate-notifier=false\n", user="user")
    put("/home/user/ws.py", WEBSOCKET, user="user")
    api.out(sandbox, "update-ca-certificates", user="root")
    yield sandbox
    api.call("DELETE", f"/v1/sandboxes/{sandbox}")


def log_of(api, box, after=0):
    return api.ok("GET", f"/v1/sandboxes/{box}/network/log?after={after}")["entries"]


def wait_entry(api, box, **want):
    return until(lambda: next((e for e in reversed(log_of(api, box)) if all(e[k] == v for k, v in want.items())), None), f"an entry {want}")


def fails(api, box, command, **more):
    done = api.exec(box, command, timeout=90, **more)
    assert done["exit_code"] != 0, done
    return done["stdout"] + done["stderr"]


# -- curl, wget

@pytest.mark.parametrize("url, said", [
    ("http://good.test/", "page of good.test by HTTP/1.1"),
    ("https://good.test/", "page of good.test by HTTP/2.0"),  # chosen in the handshake that we pass on
    ("--http1.1 https://www.good.test/ -k", "page of www.good.test by HTTP/1.1"),
    ("http://six.good.test/", "page of six.good.test"),
    ("-6 https://good.test/", "page of good.test"),
    ("--tls-max 1.2 https://good.test/", "page of good.test"),
    ("-H 'Host: GOOD.test.:80' http://good.test/", "page of good.test"),
])
def test_curl_reaches_what_is_allowed(api, box, url, said):
    assert said in api.out(box, f"curl -sS --fail {url}")


def test_curl_moves_much_in_both_directions(api, box, world):
    assert api.out(box, "curl -sS https://good.test/files/big | wc -c").strip() == str(8 << 20)
    api.out(box, "head -c 8388608 /dev/zero | curl -sS --fail -T - https://good.test/up/one")
    assert (world.dir / "up/one").stat().st_size == 8 << 20
    api.out(box, "head -c 8388608 /dev/zero | curl -sS --fail -T - http://good.test/up/two")
    assert (world.dir / "up/two").stat().st_size == 8 << 20
    for port in (80, 443):
        until(lambda: [e for e in log_of(api, box) if e["port"] == port and e["sent_bytes"] > 8 << 20], "its entry")


def test_curl_is_told_why_it_may_not(api, box, world):
    """By name there is no such host; by address, over HTTP, the reason is the answer."""
    assert "ould not resolve host" in fails(api, box, "curl -sS https://evil.test/")
    denied = api.out(box, f"curl -sS http://{world.web}/")
    error = json.loads(denied)["error"]
    assert error["code"] == "network_denied" and world.web in error["message"]
    denied = json.loads(api.out(box, "curl -sS -H 'Host: other.test' http://good.test/"))
    assert denied["error"]["code"] == "network_denied" and "other.test" in denied["error"]["message"]
    assert "reset" in fails(api, box, f"curl -sS --resolve evil.test:443:{world.web} https://evil.test/")
    assert not world.served("stolen")
    # A redirect is the server's word; following it is one more attempt.
    assert "ould not resolve host: evil.test" in fails(api, box, "curl -sSL http://good.test/away")
    entry = wait_entry(api, box, kind="dns", name="evil.test")
    assert (entry["verdict"], entry["reason"]) == ("denied", "no_rule")


def test_the_log_is_there_for_people(net, api, box):
    fails(api, box, "curl -sS https://nowhere.evil.test/")
    rows = until(lambda: [line for line in net.cli("net", "log", "--denied", box).stdout.splitlines() if "nowhere.evil.test" in line], "the row")
    assert "no_rule" in rows[0] and rows[-1] == "nowhere.evil.test: a rule lets it through: allow nowhere.evil.test"


def test_a_proxy_variable_is_no_way_around(api, box, world):
    """It names a place like any other: here one that no rule allows."""
    fails(api, box, "curl -sS https://good.test/", env=PROXIED)
    wait_entry(api, box, kind="connection", address="192.0.2.9", port=3128, verdict="denied")
    # Through a proxy that may be reached by its name, neither a tunnel nor another's page is had.
    proxied = {k: "http://odd.good.test:3128" for k in PROXIED}
    said = []

    def proxy(s):
        said.append(s.recv(4096))
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen")
    world.serve_each(world.odd, 3128, proxy)
    for url in ("https://evil.test/", "http://evil.test/"):
        done = api.exec(box, f"curl -sS {url}", env=proxied)
        assert "stolen" not in done["stdout"], done
    assert not any(b"evil" in s for s in said)


# -- python

def python(script):
    return f"python3 -c {shlex.quote(script)}"


def test_python(api, box, world):
    fetch = "import urllib.request as u; print(u.urlopen('%s').read().decode())"
    assert "page of good.test" in api.out(box, python(fetch % "https://good.test/"))
    assert "page of good.test" in api.out(box, python(fetch % "http://good.test/"))
    text = fails(api, box, python(fetch % f"http://{world.web}/"))
    assert "403" in text
    assert "Name or service not known" in fails(api, box, python(fetch % "https://evil.test/"))


def test_pip_and_requests(api, box):
    """The wheel that Debian's own installer starts from brings both."""
    wheel = next(pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl"))
    api.ok("PUT", f"/v1/sandboxes/{box}/files?path=/home/user/pip.whl", wheel.read_bytes())
    env = {"PYTHONPATH": "/home/user/pip.whl", "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
           "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt", "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    install = "python3 -m pip install -q --target /home/user/pip --index-url"
    api.out(box, f"{install} https://pypi.good.test/simple/ warren-probe", env=env)
    assert api.out(box, "cd pip && " + python("import warren_probe; print(warren_probe.word)")).strip() == "installed"
    assert "No matching distribution" in fails(api, box, f"{install} https://evil.test/simple/ warren-probe --upgrade", env=env)
    get = "from pip._vendor import requests; print(requests.get('%s', verify='/etc/ssl/certs/ca-certificates.crt').text)"
    assert "page of good.test" in api.out(box, python(get % "https://good.test/"), env=env)
    assert "network_denied" in api.out(box, python("from pip._vendor import requests; "
                                                   "print(requests.get('http://good.test/', headers={'Host': 'evil.test'}).json()['error']['code'])"), env=env)


# -- node and npm

def test_node_fetch(api, box, world):
    fetch = "fetch(%r).then(r => r.text()).then(console.log, e => { console.log(e.cause.code); process.exit(1) })"
    env = {"NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt"}
    for url in ("https://good.test/", "http://good.test/"):
        assert "page of good.test" in api.out(box, ["node", "-e", fetch % url], env=env)
    assert "ENOTFOUND" in fails(api, box, ["node", "-e", fetch % "https://evil.test/"], env=env)
    assert "network_denied" in api.out(box, ["node", "-e", fetch % f"http://{world.web}/"], env=env)
    assert "ECONNRESET" in fails(api, box, ["node", "-e", fetch % f"https://{world.web}/"], env=env)


def test_npm(api, box):
    env = {"NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt"}
    api.out(box, "mkdir -p app && cd app && npm install --silent warren-probe", env=env, timeout=120)
    assert api.out(box, "cd app && node -e 'require(\"warren-probe\")'").strip() == "probe has a part"
    text = fails(api, box, "cd app && npm install --registry https://evil.test/ warren-other", env=env)
    assert "ENOTFOUND" in text


# -- git

def test_git_over_https(api, box, world):
    api.out(box, f"{IDENTITY} && git clone -q https://git.good.test/repo.git web && cd web && cat README && "
            "echo more >> README && git commit -q -am web && git push -q origin HEAD:web")
    assert "web" in api.out(box, "git ls-remote https://git.good.test/repo.git")
    assert "ould not resolve host" in fails(api, box, "git clone -q https://git.evil.test/repo.git x")


def test_git_over_ssh(api, box, world):
    until_installed(api, box)
    place = f"root@ssh.good.test:{world.dir}/git/repo.git"
    env = {"GIT_SSH_COMMAND": SSH}
    api.out(box, f"{IDENTITY} && git clone -q {place} shell && cd shell && git checkout -q -b shell && echo x >> README && "
            "git commit -q -am shell && git push -q origin shell", env=env)
    assert "refs/heads/shell" in api.out(box, f"git ls-remote {place}", env=env)
    # The same server by its address has no name that a rule could speak of.
    text = fails(api, box, f"git ls-remote root@{world.shell}x:{world.dir}/git/repo.git", env=env)
    assert "resolve" in text
    assert "ould not read from remote" in fails(api, box, f"git ls-remote root@{world.evil}:{world.dir}/git/repo.git", env=env)
    wait_entry(api, box, kind="connection", address=world.evil, port=22, verdict="denied", reason="no_rule")


def test_git_by_its_own_protocol(api, box, world):
    """Its first line has no end."""
    world.spawn("git", "daemon", f"--base-path={world.dir}/git", "--export-all", f"--listen={world.odd}")
    until(lambda: world.answers(world.odd, 9418), "the git server")
    assert "refs/heads" in api.out(box, "git ls-remote git://odd.good.test/repo.git")


# -- apt, and what it brings

def until_installed(api, box):
    if api.exec(box, "command -v nc")["exit_code"] != 0:
        api.out(box, "apt-get update -q && apt-get install -q -y --no-install-recommends wget netcat-openbsd openssh-client",
                user="root", env={"DEBIAN_FRONTEND": "noninteractive"}, timeout=180)


def test_apt(api, box, world):
    until_installed(api, box)
    assert world.served("/apt/./Packages") or world.served("/apt/Packages")
    api.out(box, "echo 'deb [trusted=yes] http://apt.evil.test/apt ./' > /etc/apt/sources.list.d/evil.list", user="root")
    text = fails(api, box, "apt-get update -q -o APT::Update::Error-Mode=any -o Acquire::Retries=0; code=$?; rm /etc/apt/sources.list.d/evil.list; exit $code", user="root")
    assert "apt.evil.test" in text and "resolve" in text


def test_wget(api, box, world):
    until_installed(api, box)
    assert "page of good.test" in api.out(box, "wget -q -O - https://good.test/")
    assert "403" in fails(api, box, f"wget -nv -t 1 -O - http://{world.web}/")
    assert "unable to resolve" in fails(api, box, "wget -nv -t 1 -O - https://evil.test/")


def test_netcat(api, box, world):
    """A protocol that names no host goes by the name that was resolved, on ports that are not HTTP's."""
    until_installed(api, box)
    world.serve_each(world.odd, 4000, lambda s: s.sendall(b"heard " + s.recv(100)))
    assert api.out(box, "echo hello | nc -N odd.good.test 4000") == "heard hello\n"
    # Who says little and ends, or nothing at all, still gets the answer.
    assert api.out(box, "printf hello | nc -N odd.good.test 4000") == "heard hello"
    assert api.out(box, "nc -N odd.good.test 4000 < /dev/null") == "heard "
    world.serve_each(world.evil, 4000, lambda s: s.sendall(b"heard " + s.recv(100)))
    assert api.exec(box, f"echo hello | nc -N {world.evil} 4000")["stdout"] == ""
    # To port 443 only what names its host: this would reach anybody behind that address.
    assert api.exec(box, "echo hello | nc -N good.test 443")["stdout"] == ""


# -- WebSocket

WEBSOCKET = r"""
import base64, os, socket, ssl, sys
scheme, host = sys.argv[1:]
s = socket.create_connection((host, 443 if scheme == "wss" else 80))
if scheme == "wss":
    s = ssl.create_default_context().wrap_socket(s, server_hostname=host)
s.sendall(b"GET /chat HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
          b"Sec-WebSocket-Key: %s\r\n\r\n" % (host.encode(), base64.b64encode(os.urandom(16))))
head = b""
while b"\r\n\r\n" not in head:
    head += s.recv(4096)
print(head.split(b"\r\n")[0].decode())
for word in (b"one", b"two", b"three"):
    mask = os.urandom(4)
    s.sendall(bytes([0x81, 0x80 | len(word)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(word)))
    start = s.recv(2)
    print(s.recv(start[1]).decode())
"""


def test_websocket(api, box):
    said = ["HTTP/1.1 101 Switching Protocols", "one", "two", "three"]
    assert api.out(box, "python3 ws.py wss ws.good.test").splitlines() == said
    assert fails(api, box, "python3 ws.py wss ws.evil.test")
