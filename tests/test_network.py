"""What a sandbox reaches: real programs inside, real servers on an address of this machine's own."""
import contextlib
import http.server
import os
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import threading

import pytest

import harness
from harness import until

HERE = "198.51.100.77"  # documentation's, on loopback while these tests run
DNS_PORT, TLS_PORT, HTTP_PORT, GREET_PORT = 5377, 443, 80, 2525
NAMES = {"good.test": HERE, "other.test": HERE, "inner.test": "169.254.169.254", "host.test": "127.0.0.1"}

# Inside: one line of what happened.
CLIENT = r"""
import socket, ssl, sys
what, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
try:
    s = socket.create_connection((host, port), timeout=60)
    if what == "tls":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        s = context.wrap_socket(s, server_hostname=sys.argv[4] or None)
        s.sendall(b"hello\n")
    elif what == "http":
        for name in sys.argv[4].split():
            s.sendall(b"GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (name.encode(), name.encode()))
        s.shutdown(socket.SHUT_WR)
    elif what == "raw":
        s.sendall(b"hello\n")
    got = b""
    while piece := s.recv(65536):
        got += piece
        if what == "greet":
            break
    print("got", got.decode().replace("\r\n", "|").replace("\n", "|"))
except Exception as e:
    print(type(e).__name__, e)
"""


def answer(question):
    """An answer to one question for an address; the names asked for are kept."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode())
        at += 1 + question[at]
    name, kind = ".".join(labels).lower(), struct.unpack(">H", question[at + 1:at + 3])[0]
    found = NAMES.get(name) if kind == 1 else None
    head = question[:2] + struct.pack(">HHHHH", 0x8180 if name in NAMES else 0x8183, 1, 1 if found else 0, 0, 0)
    body = question[12:at + 5]
    if found:
        body += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton(found)
    return name, head + body


class World:
    """A resolver, a TLS server that gives back a line, and one that speaks first."""

    def __init__(self, tmp):
        self.asked = []
        cert, key = str(tmp / "cert"), str(tmp / "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=good.test"],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        world = self

        class Resolver(socketserver.BaseRequestHandler):
            def handle(self):
                name, reply = answer(self.request[0])
                world.asked.append(name)
                self.request[1].sendto(reply, self.client_address)

        class Echo(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError, ssl.SSLError):
                    with context.wrap_socket(self.request, server_side=True) as s:
                        s.sendall(b"you said " + s.recv(100))

        class Web(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = f"page {self.path} of {self.headers['Host']}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Greet(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.sendall(b"220 welcome\n")
                with contextlib.suppress(OSError):
                    self.request.recv(100)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self.servers = [socketserver.ThreadingUDPServer((HERE, DNS_PORT), Resolver),
                        socketserver.ThreadingTCPServer((HERE, TLS_PORT), Echo),
                        socketserver.ThreadingTCPServer((HERE, HTTP_PORT), Web),
                        socketserver.ThreadingTCPServer((HERE, GREET_PORT), Greet)]
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    subprocess.run(["ip", "addr", "add", f"{HERE}/32", "dev", "lo"], check=True)
    try:
        with contextlib.closing(World(tmp_path_factory.mktemp("world"))) as w:
            yield w
    finally:
        subprocess.run(["ip", "addr", "del", f"{HERE}/32", "dev", "lo"], check=True)


@pytest.fixture(scope="module")
def daemon(world):
    d = harness.Daemon("--resolvers", f"{HERE}:{DNS_PORT}", "--egress-open", f"{HERE}/32")
    try:
        d.api.import_image("base", harness.base_image())
        yield d
    finally:
        if d.process.poll() is not None:
            d.start()
        d.close()


@pytest.fixture(scope="module")
def api(daemon):
    return daemon.api


def make_box(api, network):
    sandbox = api.create(network=network)["id"]
    api.ok("PUT", f"/v1/sandboxes/{sandbox}/files?path=/tmp/client.py", CLIENT)
    return sandbox


@pytest.fixture(scope="module")
def box(api):
    """A sandbox that may reach one name."""
    sandbox = make_box(api, RULES)
    yield sandbox
    api.call("DELETE", f"/v1/sandboxes/{sandbox}")


RULES = {"rules": ["allow good.test", "allow inner.test", "allow host.test"]}


def attempt(api, box, what, host, port, name=""):
    return api.out(box, ["python3", "/tmp/client.py", what, host, str(port), name]).strip()


def log_of(api, box, after=0):
    return api.ok("GET", f"/v1/sandboxes/{box}/network/log?after={after}")["entries"]


def last_number(api, box):
    entries = log_of(api, box)
    return entries[-1]["number"] if entries else 0


def wait_entry(api, box, after, **want):
    """The first entry after that number in which these are so."""
    def found():
        return next((e for e in log_of(api, box, after) if all(e[k] == v for k, v in want.items())), None)
    return until(found, f"an entry {want}")


def test_a_name_in_the_rules_is_reached(api, box, world):
    before = last_number(api, box)
    assert attempt(api, box, "tls", "good.test", TLS_PORT, "good.test") == "got you said hello|"
    entry = wait_entry(api, box, before, kind="connection")
    assert entry["verdict"] == "allowed" and entry["rule"] == "allow good.test"
    assert (entry["name"], entry["address"], entry["port"]) == ("good.test", HERE, TLS_PORT)
    assert entry["sent_bytes"] > 100 and entry["received_bytes"] > 100


def test_other_names_are_not_even_asked_for(api, box, world):
    before = last_number(api, box)
    assert attempt(api, box, "tls", "other.test", TLS_PORT, "other.test").startswith("gaierror")
    assert attempt(api, box, "tls", "secrets-go-here.evil.test", TLS_PORT).startswith("gaierror")
    assert not [n for n in world.asked if n != "good.test" and n not in ("inner.test", "host.test")]
    entry = wait_entry(api, box, before, kind="dns", name="other.test")
    assert (entry["verdict"], entry["reason"], entry["address"]) == ("denied", "no_rule", None)


def test_the_name_said_must_be_the_name_resolved(api, box):
    """The same address, by another name or by none, is cut, not left to time out."""
    before = last_number(api, box)
    for name in ("other.test", ""):
        assert attempt(api, box, "tls", "good.test", TLS_PORT, name).startswith("ConnectionResetError"), name
    assert attempt(api, box, "raw", "good.test", TLS_PORT).startswith("ConnectionResetError")
    entries = log_of(api, box, before)
    assert [e["verdict"] for e in entries if e["kind"] == "connection"] == ["denied"] * 3


def test_each_request_over_http_is_checked(api, box):
    got = attempt(api, box, "http", "good.test", HTTP_PORT, "good.test good.test")
    assert got.count("page /good.test of good.test") == 2
    before = last_number(api, box)
    # A second request on the same connection that names another host never arrives.
    assert "of other.test" not in attempt(api, box, "http", "good.test", HTTP_PORT, "good.test other.test")
    wait_entry(api, box, before, kind="connection", name="other.test", verdict="denied")
    denied = attempt(api, box, "http", "good.test", HTTP_PORT, "other.test")
    assert "403 Forbidden" in denied and '"network_denied"' in denied and "other.test" in denied


def test_a_server_may_speak_first(api, box):
    assert attempt(api, box, "greet", "good.test", GREET_PORT) == "got 220 welcome|"


def test_a_name_does_not_lead_to_places_out_of_reach(api, box):
    """Rebinding: what the resolver says of an allowed name is still no way to the host or to metadata."""
    before = last_number(api, box)
    for name in ("inner.test", "host.test"):
        assert attempt(api, box, "raw", name, 80).startswith("gaierror")
        wait_entry(api, box, before, kind="dns", name=name, reason="reserved_address")


def test_the_network_of_one_is_changed_while_it_runs(api, box, daemon):
    place = f"/v1/sandboxes/{box}"
    assert api.ok("PATCH", place, {"network": "none"})["network"] == "none"
    assert "efused" in attempt(api, box, "greet", HERE, GREET_PORT)
    assert api.ok("PATCH", place, {"network": "open"})["network"] == "open"
    assert attempt(api, box, "greet", HERE, GREET_PORT) == "got 220 welcome|"
    # Under any rules: metadata, the host's loopback by its own address, private networks.
    denied = attempt(api, box, "http", "169.254.169.254", 80, "x")
    assert "403 Forbidden" in denied and '"network_denied"' in denied
    for host in ("10.1.2.3", "100.100.100.200", "::ffff:10.0.0.1", "fd00:ec2::254"):
        assert attempt(api, box, "raw", host, 443).startswith("ConnectionResetError"), host
    assert api.ok("PATCH", place, {"network": RULES})["network"] == RULES
    assert attempt(api, box, "greet", "198.51.100.78", GREET_PORT).startswith("ConnectionResetError")


def test_loopback_inside_is_its_own(api, box, daemon):
    assert "efused" in attempt(api, box, "raw", "127.0.0.1", daemon.port)


def test_open_connections_end_with_the_permission(api, world):
    sandbox = make_box(api, "open")
    try:
        n = api.start(sandbox, ["python3", "-c", "import socket; s = socket.create_connection(('%s', %d))\n"
                                "print(s.recv(99), flush=True)\ntry: print(s.recv(99))\n"
                                "except ConnectionResetError: print('cut')" % (HERE, GREET_PORT)])["process"]
        until(lambda: b"welcome" in harness.output_of(api.output(sandbox, n, follow=False)), "the greeting")
        api.ok("PATCH", f"/v1/sandboxes/{sandbox}", {"network": {"rules": ["allow good.test"]}})
        api.wait(sandbox, n)
        assert b"cut" in harness.output_of(api.output(sandbox, n))
    finally:
        api.delete(sandbox)


def test_without_a_network_there_is_none(api):
    sandbox = make_box(api, "none")
    try:
        assert api.get(sandbox)["network"] == "none"
        assert "unreachable" in attempt(api, sandbox, "raw", HERE, TLS_PORT)
        assert log_of(api, sandbox) == []
    finally:
        api.delete(sandbox)


@pytest.mark.parametrize("network", [
    "all", 7, ["open"], {}, {"rules": "allow *"}, {"rules": [7]}, {"rules": ["allow"]}, {"rules": ["allow a.test\nallow *"]},
    {"rules": ["allow a.test udp"]}, {"rules": ["permit a.test"]}, {"rules": ["allow *"] * 300}, {"rules": [], "x": 1},
    "allow *"])
def test_what_is_no_network_is_refused(api, network):
    api.refused(400, "invalid_network", "POST", "/v1/sandboxes", {"network": network})


def test_it_comes_back_when_the_broker_does(api, box, daemon):
    """Nothing leaves while it is away; then everything works again without anybody's help."""
    assert attempt(api, box, "greet", "good.test", GREET_PORT) == "got 220 welcome|"
    for pid in daemon.pids("warren-broker"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: attempt(api, box, "greet", "good.test", GREET_PORT) == "got 220 welcome|", "the network")
    assert attempt(api, box, "tls", "good.test", TLS_PORT, "other.test").startswith("ConnectionResetError")


def test_it_comes_back_when_the_daemon_does_and_after_a_stop(api, box, daemon):
    daemon.kill()
    daemon.start()
    until(lambda: attempt(api, box, "greet", "good.test", GREET_PORT) == "got 220 welcome|", "the network")
    assert api.get(box)["network"] == RULES
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    api.ok("POST", f"/v1/sandboxes/{box}/start")
    assert attempt(api, box, "greet", "good.test", GREET_PORT) == "got 220 welcome|"
    assert attempt(api, box, "tls", "other.test", TLS_PORT, "other.test").startswith("gaierror")


def test_the_command_line_says_what_was_denied(api, box, daemon):
    env = {**os.environ, "WARREN_URL": daemon.url, "WARREN_API_KEY": daemon.key}

    def warren(*args):
        done = subprocess.run([str(harness.BUILD / "warren"), *args], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        return done.stdout
    made = warren("create", "--rule", "allow good.test 443", "--rule", "deny *").strip()
    try:
        assert api.get(made)["network"] == {"rules": ["allow good.test 443", "deny *"]}
        warren("update", "--net", "open", made)
        assert api.get(made)["network"] == "open"
        api.ok("PUT", f"/v1/sandboxes/{made}/files?path=/tmp/client.py", CLIENT)
        attempt(api, made, "raw", "10.9.8.7", 443)
        rows = until(lambda: [line for line in warren("net", "log", "--denied", made).splitlines() if "10.9.8.7:443" in line],
                     "the entry")
        assert "denied" in rows[0] and "reserved_address" in rows[0]
    finally:
        api.delete(made)
