"""What a sandbox reaches: real programs inside, real servers on an address of this machine's own."""
import contextlib
import http.server
import json
import os
import re
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import urllib.parse

import pytest

import harness
from harness import until
from test_build import context_tar

HERE = harness.own_address(1)  # on loopback while these tests run
DNS_PORT, TLS_PORT, HTTP_PORT, GREET_PORT, UDP_PORT = 5377, 443, 80, 2525, 7777
NAMES = {"good.test": HERE, "other.test": HERE, "inner.test": "169.254.169.254", "host.test": "127.0.0.1",
         "bare.test": None, "broken.test": None}

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
    code = 2 if name == "broken.test" else 0 if name in NAMES else 3
    head = question[:2] + struct.pack(">HHHHH", 0x8180 + code, 1, 1 if found else 0, 0, 0)
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
                if self.headers["Upgrade"]:
                    return self.switch()
                body = f"page {self.path} of {self.headers['Host']}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def switch(self):
                """Any protocol, and then gives back what it hears."""
                self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
                                 + self.headers["Upgrade"].encode() + b"\r\n\r\nfirst ")
                self.close_connection = True
                while piece := self.rfile.read1(65536):
                    self.wfile.write(piece)

            def log_message(self, *args):
                pass

        class Greet(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.sendall(b"220 welcome\n")
                with contextlib.suppress(OSError):
                    self.request.sendall(self.request.recv(100))

        class Parrot(socketserver.BaseRequestHandler):
            def handle(self):
                self.request[1].sendto(b"you said " + self.request[0], self.client_address)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        socketserver.ThreadingUDPServer.max_packet_size = 65535
        self.servers = [socketserver.ThreadingUDPServer((HERE, UDP_PORT), Parrot),
                        socketserver.ThreadingUDPServer((HERE, DNS_PORT), Resolver),
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
    with harness.own_addresses(HERE), contextlib.closing(World(tmp_path_factory.mktemp("world"))) as w:
        yield w


@pytest.fixture(scope="module")
def daemon(world):
    with harness.running("--resolvers", f"{HERE}:{DNS_PORT}", "--egress-open", f"{HERE}/32") as d:
        yield d


@pytest.fixture(scope="module")
def api(daemon):
    return daemon.api


def make_box(api, network):
    return api.create_with("/tmp/client.py", CLIENT, network=network)


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
    def verdicts():
        return [e["verdict"] for e in log_of(api, box, before) if e["kind"] == "connection"]
    until(lambda: len(verdicts()) == 3, "an entry of each")
    assert verdicts() == ["denied"] * 3


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


def test_a_protocol_may_begin_with_any_byte(api, box):
    """Databases begin with a length: what such a byte would mean in another protocol is no reason to refuse it."""
    assert api.out(box, ["python3", "-c", f"""
import socket
for first in range(256):
    for greeted in True, False:
        with socket.create_connection(("good.test", {GREET_PORT}), timeout=60) as s, s.makefile("rb") as f:
            said = bytes([first, 0, 0, 1, 133, 166, 255, 1])
            if greeted:
                f.readline()
            s.sendall(said)
            if not greeted:
                f.readline()
            assert f.read(len(said)) == said, (first, greeted)
"""]) == ""


def test_a_name_does_not_lead_to_places_out_of_reach(api, box):
    """Rebinding: what the resolver says of an allowed name is still no way to the host or to metadata."""
    before = last_number(api, box)
    for name in ("inner.test", "host.test"):
        assert attempt(api, box, "raw", name, 80).startswith("gaierror")
        entry = wait_entry(api, box, before, kind="dns", name=name, reason="reserved_address")
        assert entry["address"] == NAMES[name] and f"egress-open = {NAMES[name]}" in entry["hint"]


def test_a_name_that_leads_nowhere_has_a_line_in_the_log(api, world):
    """Allowed, asked for, and not there: the log says why, once for both families."""
    sandbox = make_box(api, {"rules": ["allow *"]})
    try:
        for name, error, word in (("nowhere.test", "NXDOMAIN", "no such name"), ("bare.test", "NODATA", "no address"),
                                  ("broken.test", "SERVFAIL", "could not say")):
            before = last_number(api, sandbox)
            assert attempt(api, sandbox, "raw", name, 80).startswith("gaierror")
            entry = wait_entry(api, sandbox, before, kind="dns", name=name)
            assert (entry["verdict"], entry["error"], entry["rule"], entry["address"]) == ("allowed", error, "allow *", None)
            assert word in entry["hint"]
            attempt(api, sandbox, "raw", name, 80)
            assert len([e for e in log_of(api, sandbox, before) if e["name"] == name]) == 1
    finally:
        api.delete(sandbox)


def test_http_on_any_port_is_told_why(api, box):
    before = last_number(api, box)
    for host, port, reason in (("1.2.3.4", 8080, "no rule allows it"), ("10.9.8.7", 3000, "private or reserved"),
                               ("169.254.169.254", 443, "private or reserved")):
        denied = attempt(api, box, "http", host, port, "x")
        assert "403 Forbidden" in denied and '"network_denied"' in denied, denied
        assert f"{host} port {port}" in denied and reason in denied, denied
        wait_entry(api, box, before, kind="connection", address=host, port=port, verdict="denied")
    assert attempt(api, box, "raw", "1.2.3.4", 8080).startswith("ConnectionResetError")
    assert attempt(api, box, "greet", "1.2.3.4", 8080).startswith("ConnectionResetError")  # it waits for the server
    assert wait_entry(api, box, before, address="1.2.3.4")["hint"] == "a rule lets it through: allow 1.2.3.4 8080"



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
    assert attempt(api, box, "greet", "198.51.100.254", GREET_PORT).startswith("ConnectionResetError")


def test_loopback_inside_is_its_own(api, box, daemon):
    assert "efused" in attempt(api, box, "raw", "127.0.0.1", daemon.port)


def test_what_it_finds_as_its_own_address_is_itself(api, box):
    """As programs do that tell each other where they are: what a datagram would come from, and a server on every address."""
    out = api.out(box, ["python3", "-c", """
import socket
for family, far, every in ((socket.AF_INET, "198.51.100.1", "0.0.0.0"), (socket.AF_INET6, "2001:db8::1", "::")):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.connect((far, 9))
        mine = s.getsockname()[0]
    with socket.create_server((every, 0), family=family) as server:
        port = server.getsockname()[1]
        with socket.create_connection((mine, port), timeout=60) as c:
            peer, where = server.accept()
            c.sendall(b"x")
            assert where[0] == mine and peer.recv(1) == b"x", (mine, where)
    try:
        socket.create_connection((mine, port), timeout=60)
    except ConnectionRefusedError:
        print("itself")
"""])
    assert out.split() == ["itself", "itself"]


def test_open_connections_end_on_request(api, world):
    sandbox = make_box(api, "open")
    try:
        n = api.start(sandbox, ["python3", "-c", "import socket; s = socket.create_connection(('%s', %d))\n"
                                "print(s.recv(99), flush=True)\ntry: print(s.recv(99))\n"
                                "except ConnectionResetError: print('cut')" % (HERE, GREET_PORT)])["process"]
        until(lambda: b"welcome" in harness.output_of(api.output(sandbox, n, follow=False)), "the greeting")
        place, tighter = f"/v1/sandboxes/{sandbox}", {"network": {"rules": ["allow good.test"]}}
        api.ok("PATCH", place, tighter)  # for what begins from now on
        assert attempt(api, sandbox, "greet", HERE, GREET_PORT).startswith("ConnectionResetError")
        assert api.process(sandbox, n)["state"] == "running"
        api.refused(400, "invalid_query", "PATCH", place + "?cut=perhaps", tighter)
        api.ok("PATCH", place + "?cut=true", tighter)
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


# Inside: a request for another protocol, and then bytes of it.
SWITCH = r"""
import socket, sys
what, rest = sys.argv[1], b"\x81\x05hello GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"
s = socket.create_connection(("good.test", 80), timeout=60)
try:
    s.sendall(b"GET /chat HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: " + what.encode()
              + b"\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    got = b""
    while not got.endswith(b"first "):
        piece = s.recv(4096)
        if not piece:
            raise ConnectionResetError
        got += piece
    s.sendall(rest)
    back = b""
    while len(back) < len(rest):
        piece = s.recv(4096)
        if not piece:
            raise ConnectionResetError
        back += piece
    print("ok" if back == rest else "wrong")
except ConnectionResetError:
    print("cut")
"""


def test_a_websocket_passes_and_other_upgrades_do_not(api, box):
    assert api.out(box, ["python3", "-c", SWITCH, "websocket"]).strip() == "ok"
    assert api.out(box, ["python3", "-c", SWITCH, "h2c"]).strip() == "cut"


# Inside: what each datagram came back as, with and without connect.
DATAGRAMS = r"""
import socket, sys
host, port, size, bound = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "connect"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(30)
data = bytes(range(256)) * (size // 256 + 1)
try:
    if bound:
        s.connect((host, port))
        s.send(data[:size])
        got, source = s.recv(65536), (host, port)
    else:
        s.sendto(data[:size], (host, port))
        got, source = s.recvfrom(65536)
    print("ok" if got == b"you said " + data[:size] and source == (host, port) else "wrong")
except Exception as e:
    print(type(e).__name__)
"""


def datagrams(api, box, port, size, how):
    return api.out(box, ["python3", "-c", DATAGRAMS, HERE, str(port), str(size), how]).strip()


def test_datagrams_pass_by_rule_and_are_refused_at_once_without(api):
    sandbox = make_box(api, {"rules": [f"allow {HERE}/32 {UDP_PORT}-{UDP_PORT + 1} udp", "allow good.test"]})
    try:
        for size in (0, 1, 1400, 40000):
            for how in ("connect", "sendto"):
                assert datagrams(api, sandbox, UDP_PORT, size, how) == "ok", (size, how)
        assert datagrams(api, sandbox, UDP_PORT + 1, 9, "connect") == "ConnectionRefusedError"  # nobody is there
        after = last_number(api, sandbox)
        assert datagrams(api, sandbox, UDP_PORT + 2, 9, "connect") == "ConnectionRefusedError"  # no rule
        wait_entry(api, sandbox, after, protocol="udp", port=UDP_PORT + 2, verdict="denied", reason="no_rule")
        api.ok("PATCH", f"/v1/sandboxes/{sandbox}?cut=true", {"network": RULES})
        assert datagrams(api, sandbox, UDP_PORT, 9, "connect") == "ConnectionRefusedError"
        wait_entry(api, sandbox, 0, protocol="udp", port=UDP_PORT, verdict="allowed", sent_bytes=40000)
    finally:
        api.call("DELETE", f"/v1/sandboxes/{sandbox}")


def test_what_was_made_ahead_is_of_its_kind(api):
    """Some blank cells are made for a network before anybody asks: nobody without one gets such a cell."""
    for i in range(8):
        without = i % 2 == 0
        sandbox = api.create(network="none" if without else RULES)["id"]
        routes = api.out(sandbox, "cat /proc/net/fib_trie")
        assert ("192.0.2.2" in routes) != without, (i, routes)
        assert ("192.0.2.53" in api.out(sandbox, "cat /etc/resolv.conf")) != without
        if not without:
            client = "import socket; print(socket.gethostbyname('good.test'))"
            assert api.out(sandbox, ["python3", "-c", client]).strip() == HERE
        api.call("DELETE", f"/v1/sandboxes/{sandbox}")


@pytest.mark.parametrize("network", [
    "all", 7, ["open"], {}, {"rules": "allow *"}, {"rules": [7]}, {"rules": ["allow"]}, {"rules": ["open"]}, {"rules": ["allow", "a.test"]}, {"rules": ["allow a.test\nallow *"]},
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
        warren("update", "--net", "agents", made)
        assert api.get(made)["network"] == "agents"
        warren("net", "set", made, "allow good.test 80,443", "deny 203.0.113.0/24 1-9 udp")
        assert api.get(made)["network"] == {"rules": ["allow good.test 80,443", "deny 203.0.113.0/24 1-9 udp"]}
        assert warren("--json", "net", "set", made, "open").strip() == '"open"'
        assert api.get(made)["network"] == "open"
        api.ok("PUT", f"/v1/sandboxes/{made}/files?path=/tmp/client.py", CLIENT)
        attempt(api, made, "raw", "10.9.8.7", 443)
        rows = until(lambda: [line for line in warren("net", "log", "--denied", made).splitlines() if "10.9.8.7:443" in line],
                     "the entry")
        assert "denied" in rows[0] and "reserved_address" in rows[0]
        assert "10.9.8.7:443: 10.9.8.7 is private or reserved" in rows[-1] and "egress-open = 10.9.8.7" in rows[-1]
        until(lambda: "allowed" in warren("net", "log", "--json", made) or attempt(api, made, "greet", "good.test", GREET_PORT) is None,
              "something that was allowed")
        told = json.loads(warren("net", "log", "--json", "--denied", made))
        assert told and all(e["verdict"] == "denied" for e in told)
        warren("update", "--net", "open", "--proxy", "socks5://me:secret@proxy.example.com:1080", "--net-limits", "connections=9,rate_mbps=5", made)
        assert api.get(made)["network"] == {"preset": "open", "proxy": "socks5://me@proxy.example.com:1080"}
        assert api.get(made)["network_limits"] == {"connections": 9, "connections_per_s": None, "rate_mbps": 5, "total_mb": None}
        page = warren("get", made)
        assert all(word in page for word in ("open", "socks5://me@proxy.example.com:1080", "connections=9, rate_mbps=5")) and "secret" not in page
        warren("update", "--net-limits", "none", made)
        assert api.get(made)["network_limits"]["connections"] is None
        for args in (["net", "set", made, "allow", "good.test"], ["update", "--net", "open", "--rule", "deny *", made],
                     ["update", "--proxy", "http://a.test:1", made], ["update", "--net-limits", "connections", made]):
            done = subprocess.run([str(harness.BUILD / "warren"), *args], env=env, capture_output=True, text=True, timeout=60)
            assert done.returncode in (1, 2) and re.search("quote it|takes the place|needs --net|connections=N", done.stderr), done
    finally:
        api.delete(made)


def build(api, step, **query):
    """The last line of a build whose one command is this."""
    path = "/v1/images/build?" + urllib.parse.urlencode({"name": "net-build", "no_cache": "true", **query})
    reply = api.call("POST", path, context_tar({"Dockerfile": f"FROM base\nRUN {step}\n"}))
    return json.loads(reply.body.splitlines()[-1]) if reply.status == 200 else reply.json


def test_a_build_reaches_what_it_may(api):
    page = f"curl -sSf --max-time 60 http://good.test:{HTTP_PORT}/x"
    try:
        assert build(api, f'test "$({page})" = "page /x of good.test"')["type"] == "image"  # open, unless it says otherwise
        assert build(api, page, network="allow good.test 80\n")["type"] == "image"
        for network in ("none", "allow other.test", "deny good.test\nallow *"):
            assert build(api, page, network=network)["code"] == "build_failed", network
        assert build(api, page, network="some")["error"]["code"] == "invalid_network"
    finally:
        api.call("DELETE", "/v1/images/net-build")


def test_what_a_template_starts_has_its_network(api):
    """Also where it is made ahead; who takes it has what they asked for."""
    template = {"name": "fetcher", "image": "base", "network": {"rules": ["allow good.test"]}, "warm": 1,
                "start_command": f"curl -sS --retry 9 http://good.test:{HTTP_PORT}/y >/tmp/page; exec sleep 1000",
                "ready": {"command": "test -s /tmp/page"}}
    api.ok("POST", "/v1/templates", template)
    try:
        assert api.ok("GET", "/v1/templates/fetcher")["network"] == template["network"]
        for network, reached in ((None, "page /z of good.test"), ("none", "")):
            until(lambda: api.ok("GET", "/v1/templates/fetcher")["ready_sandboxes"], "one made ahead")
            made = api.create(template="fetcher", **({"network": network} if network else {}))["id"]
            assert api.out(made, ["cat", "/tmp/page"]) == "page /y of good.test"
            assert api.out(made, ["sh", "-c", f"curl -s http://good.test:{HTTP_PORT}/z || true"]) == reached
            api.delete(made)
    finally:
        api.ok("DELETE", "/v1/templates/fetcher")
