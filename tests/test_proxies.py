"""Connections of sandboxes through proxies that a site demands, or that a sandbox brings: real ones, on an
address of this machine's own."""
import contextlib
import pathlib
import shutil
import socket
import socketserver
import subprocess
import threading

import pytest

import harness
from harness import until
from net_kit import die_with_parent
from test_network import CLIENT, answer, NAMES

HERE, NEAR = harness.own_address(4), harness.own_address(5)  # on loopback while these tests run
DNS_PORT, GREET_PORT = 5378, 2526
TINY, TINY_LOGIN, SOCKS, SOCKS_LOGIN, COATED, COATED_OTHER = range(3141, 3147)
TINY_CONF = """Port {port}
Listen {here}
Timeout 60
LogFile "{log}"
LogLevel Connect
{login}
"""
STUNNEL_CONF = """foreground = yes
pid =
output = {d}/stunnel.log
[good]
accept = {here}:{good}
connect = {here}:{tiny}
cert = {d}/proxy.pem
[other]
accept = {here}:{other}
connect = {here}:{tiny}
cert = {d}/other.pem
"""
NAMES.update({"far.test": HERE, "near.test": NEAR, "proxy.test": HERE})


class Greet(socketserver.BaseRequestHandler):
    """Speaks first, then gives back what it gets."""

    def handle(self):
        with contextlib.suppress(OSError):
            self.request.sendall(b"220 welcome\n")
            while piece := self.request.recv(65536):
                self.request.sendall(piece)


class Resolver(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(answer(self.request[0])[1], self.client_address)


def certificate(directory, name, san):
    """Signed by itself: who trusts it trusts it alone."""
    pem = directory / f"{name}.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", str(directory / "key"), "-out", str(directory / f"{name}.crt"), "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName={san}"], check=True, capture_output=True)
    pem.write_text((directory / "key").read_text() + (directory / f"{name}.crt").read_text())


def listens(port):
    with socket.socket() as s:
        return s.connect_ex((HERE, port)) == 0


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    missing = [p for p in ("tinyproxy", "microsocks", "stunnel4") if not shutil.which(p)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    d = tmp_path_factory.mktemp("proxies")
    started, servers, addresses = [], [], contextlib.ExitStack()
    try:
        addresses.enter_context(harness.own_addresses(HERE, NEAR))
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        for cls, address, port, handler in ((socketserver.ThreadingUDPServer, HERE, DNS_PORT, Resolver),
                                            (socketserver.ThreadingTCPServer, HERE, GREET_PORT, Greet),
                                            (socketserver.ThreadingTCPServer, NEAR, GREET_PORT, Greet)):
            server = cls((address, port), handler)
            server.daemon_threads = True
            servers.append(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        certificate(d, "proxy", "DNS:proxy.test")
        certificate(d, "other", "DNS:other.test")
        for name, port, login in (("tiny", TINY, ""), ("login", TINY_LOGIN, "BasicAuth someone hunter2")):
            (d / f"{name}.conf").write_text(TINY_CONF.format(port=port, here=HERE, log=d / f"{name}.log", login=login))
            started.append(subprocess.Popen(["tinyproxy", "-d", "-c", str(d / f"{name}.conf")],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent))
        (d / "stunnel.conf").write_text(STUNNEL_CONF.format(d=d, here=HERE, good=COATED, other=COATED_OTHER, tiny=TINY))
        started.append(subprocess.Popen(["stunnel4", str(d / "stunnel.conf")], stderr=subprocess.DEVNULL, preexec_fn=die_with_parent))
        for port, login in ((SOCKS, []), (SOCKS_LOGIN, ["-u", "someone", "-P", "hunter2"])):
            started.append(subprocess.Popen(["microsocks", "-i", HERE, "-p", str(port), *login],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent))
        for port in range(TINY, COATED_OTHER + 1):
            until(lambda: listens(port), f"port {port}")
        yield d
    finally:
        for p in started:
            p.terminate()
        for p in started:
            p.wait()
        for server in servers:
            server.shutdown()
            server.server_close()
        addresses.close()


@pytest.fixture(scope="module")
def daemon(world):
    with harness.running("--resolvers", f"{HERE}:{DNS_PORT}", "--egress-open", f"{HERE},{NEAR}", "--egress-ca",
                         str(world / "proxy.crt")) as d:
        yield d


@pytest.fixture(scope="module")
def api(daemon):
    return daemon.api


@pytest.fixture(scope="module")
def box(api):
    sandbox = make_box(api, RULES)
    yield sandbox
    api.call("DELETE", f"/v1/sandboxes/{sandbox}")


@contextlib.contextmanager
def options(daemon, *more):
    """The same daemon, run in another way for a while."""
    before = daemon.args
    try:
        daemon.stop()
        daemon.args = before + list(more)
        daemon.start()
        yield
    finally:
        daemon.stop()
        daemon.args = before
        daemon.start()


def make_box(api, network):
    return api.create_with("/tmp/client.py", CLIENT, network=network)


def attempt(api, box, host="far.test", port=GREET_PORT):
    return api.out(box, ["python3", "/tmp/client.py", "greet", host, str(port), ""]).strip()


def entries(api, box):
    return [e for e in api.ok("GET", f"/v1/sandboxes/{box}/network/log")["entries"] if e["kind"] == "connection"]


def connects(world, name):
    return [line for line in (world / f"{name}.log").read_text().splitlines() if "Request" in line]


RULES = {"rules": ["allow far.test", "allow near.test"]}
ALL = [f"http://{HERE}:{TINY}", f"http://someone:hunter2@{HERE}:{TINY_LOGIN}", f"https://proxy.test:{COATED}",
       f"socks5://{HERE}:{SOCKS}", f"socks5h://someone:hunter2@proxy.test:{SOCKS_LOGIN}"]
# Many bytes, both ways at once.
BULK = f"""
import os, socket, threading
s = socket.create_connection(("far.test", {GREET_PORT}))
assert s.recv(12) == b"220 welcome\\n"
data, got = os.urandom(3000000), b""
threading.Thread(target=s.sendall, args=(data,)).start()
while len(got) < len(data):
    got += s.recv(65536)
print(got == data)
"""


def count(world):
    return {name: len(connects(world, name)) for name in ("tiny", "login")}


@pytest.mark.parametrize("url", ALL)
def test_a_sandbox_brings_its_own(api, box, world, url):
    before = count(world)
    shown = api.ok("PATCH", f"/v1/sandboxes/{box}", {"network": {**RULES, "proxy": url}})["network"]
    assert shown == {**RULES, "proxy": url.replace(":hunter2", "")}
    if "socks5h" in url:  # which asks for the name itself, and has no such resolver
        told = len(entries(api, box))
        assert "welcome" not in attempt(api, box)
        until(lambda: [e for e in entries(api, box)[told:] if e["error"]], "its entry")  # no later test's
        return
    assert attempt(api, box) == "got 220 welcome|"
    assert api.out(box, ["python3", "-c", BULK]).strip() == "True"
    if url.startswith("http"):
        name = "login" if "hunter2" in url else "tiny"
        assert any(f"CONNECT {HERE}:{GREET_PORT}" in line for line in connects(world, name)[before[name]:])
    assert "denied" in attempt(api, box, "other.test") or "gaierror" in attempt(api, box, "other.test")


@pytest.mark.parametrize("url, error", [
    (f"http://someone:wrong@{HERE}:{TINY_LOGIN}", "EKEYREJECTED"), (f"http://{HERE}:{TINY_LOGIN}", "EKEYREJECTED"),
    (f"socks5://someone:wrong@{HERE}:{SOCKS_LOGIN}", "EKEYREJECTED"), (f"http://{HERE}:{GREET_PORT}", "EPROTO"),
    (f"socks5://{HERE}:{GREET_PORT}", "EPROTO"), (f"http://{HERE}:9", "EHOSTDOWN"),
    ("http://nowhere.test:3128", "EHOSTDOWN"), (f"https://proxy.test:{COATED_OTHER}", "EHOSTDOWN"),
    (f"socks5://127.0.0.1:{SOCKS}", "EACCES"), (f"socks5://inner.test:{SOCKS}", "EACCES")])
def test_without_its_proxy_nothing_leaves(api, box, url, error):
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"network": {**RULES, "proxy": url}})
    before = len(entries(api, box))
    assert "welcome" not in attempt(api, box)
    assert until(lambda: [e["error"] for e in entries(api, box)[before:] if e["error"]], "an entry") == [error]


@pytest.mark.parametrize("proxy", ["proxy:3128", "http://proxy", "ftp://proxy:1", "http://a b:1", 7, ""])
def test_what_is_no_proxy_is_refused(api, proxy):
    r = api.call("POST", "/v1/sandboxes", {"network": {"preset": "open", "proxy": proxy}})
    assert r.status == 400 and r.json["error"]["code"] in ("invalid_proxy", "invalid_network"), r.body


def test_a_preset_may_have_one_and_lose_it(api, box, world):
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"network": {"preset": "open", "proxy": ALL[0]}})
    before = count(world)
    assert attempt(api, box) == "got 220 welcome|" and count(world)["tiny"] == before["tiny"] + 1
    assert api.ok("PATCH", f"/v1/sandboxes/{box}", {"network": {"preset": "open", "proxy": None}})["network"] == "open"
    assert attempt(api, box) == "got 220 welcome|" and count(world)["tiny"] == before["tiny"] + 1


def test_a_sites_proxy_is_what_everything_goes_through(daemon, api, world):
    with options(daemon, "--egress-proxy", ALL[1], "--egress-proxy-except", "near.test"):
        box = make_box(api, RULES)
        before = count(world)
        assert attempt(api, box) == "got 220 welcome|"
        assert count(world)["login"] == before["login"] + 1
        assert attempt(api, box, "near.test") == "got 220 welcome|"
        assert count(world)["login"] == before["login"] + 1
        for pid in daemon.pids("warren-broker"):
            assert b"hunter2" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        # One through the other: what the site's proxy is asked for is the sandbox's.
        api.ok("PATCH", f"/v1/sandboxes/{box}", {"network": {**RULES, "proxy": ALL[3]}})
        assert attempt(api, box) == "got 220 welcome|"
        assert f"CONNECT {HERE}:{SOCKS}" in connects(world, "login")[-1]
        api.call("DELETE", f"/v1/sandboxes/{box}")


def test_a_sites_proxy_may_be_asked_by_name(daemon, api, world):
    with options(daemon, "--egress-proxy", ALL[0], "--egress-proxy-by", "name"):
        box = make_box(api, "open")
        attempt(api, box)  # tinyproxy's own resolver does not know the name
        assert f"CONNECT far.test:{GREET_PORT}" in connects(world, "tiny")[-1]
        api.call("DELETE", f"/v1/sandboxes/{box}")


def test_a_proxy_that_is_none_is_told_at_start(tmp_path):
    r = subprocess.run([str(harness.BUILD / "warrend"), "--data", str(tmp_path / "d"), "--run", str(tmp_path / "r"),
                        "--listen", "127.0.0.1:0", "--egress-proxy", "http://me:hunter2@proxy"],
                       capture_output=True, text=True, timeout=harness.DEADLINE)
    assert r.returncode != 0 and "egress-proxy" in r.stderr and "hunter2" not in r.stderr
