"""Ways around the rules, tried for real from inside by root, while everything that leaves is watched."""
import ipaddress
import json
import socket
import subprocess

import pytest

import harness
from harness import until
from net_attacks import KIT

RULES = {"rules": ["allow good.test 80,443", "allow *.good.test", "allow *.hostile.test 80,443"]}
# Nobody here has these; on the way to them something has gone wrong.
NOWHERE = ["10.213.77.0/24", "172.29.213.0/24", "192.168.213.0/24", "100.127.213.0/24", "198.51.100.200/32", "203.0.113.240/28",
           "169.254.169.254/32", "169.254.213.0/24", "100.100.100.200/32", "168.63.129.16/32", "224.213.0.0/16", "fd00:ec2::254/128", "2001:db8:ffff::/48",
           "64:ff9b::/96", "2002::/16", "fdab:213::/32"]
FORBIDDEN = [ipaddress.ip_network(n) for n in NOWHERE]
# Where programs of this machine itself may ask a cloud for things, on these ports; not those that are tried here.
CLOUDS, CLOUDS_PORTS = {"169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"}, {53, 80, 32526}


@pytest.fixture(scope="module")
def api(net):
    return net.api


def make_box(api, network, **more):
    return api.create_with("/root/kit.py", KIT, network=network, user="root", **more)


@pytest.fixture(scope="module")
def box(api):
    sandbox = make_box(api, RULES)
    yield sandbox
    api.call("DELETE", f"/v1/sandboxes/{sandbox}")


@pytest.fixture(scope="module")
def wide(api):
    """A sandbox that may reach every public address."""
    sandbox = make_box(api, "open")
    yield sandbox
    api.call("DELETE", f"/v1/sandboxes/{sandbox}")


@pytest.fixture(scope="module")
def wires(world):
    """What passes the cable to the servers, and what passes any interface of this machine towards nowhere."""
    def nowhere(protocol, address, port):
        a = ipaddress.ip_address(address)
        return any(a in n for n in FORBIDDEN if n.version == a.version) and not (address in CLOUDS and port in CLOUDS_PORTS)
    return world.sniff(), world.sniff(nowhere, ns=False)


@pytest.fixture(autouse=True)
def watched(world, wires):
    """Whatever a test tries: the cable carries questions to our resolver and connections to the servers that
    the rules speak of, nothing else; and nothing goes to places that are nobody's."""
    cable, anywhere = wires
    before, before_any = len(cable.seen), len(anywhere.seen)
    yield
    fine = {(17, world.dns, 53), (6, world.dns, 53), (6, world.web, 80), (6, world.web, 443), (6, world.web6, 80), (6, world.web6, 443)}
    back = {world.host, str(ipaddress.ip_address(world.host6))}
    odd = [s for s in cable.seen[before:] if s not in fine and s[1] not in back and s[:2] != (6, world.odd)]
    assert not odd and not anywhere.seen[before_any:], (odd[:5], anywhere.seen[before_any:][:5])


def inside(api, box, script, *args, timeout=90, **more):
    """What a script of the kit found: it prints one JSON value."""
    done = api.exec(box, ["python3", "-c", "import sys; sys.path.insert(0, '/root'); from kit import *\n" + script,
                          *[json.dumps(a) for a in args]], timeout=timeout, **more)
    assert done["exit_code"] == 0, done
    return json.loads(done["stdout"])


def log_of(api, box):
    return api.ok("GET", f"/v1/sandboxes/{box}/network/log")["entries"]


# -- addresses

def own_addresses():
    rows = json.loads(subprocess.run(["ip", "-j", "addr"], capture_output=True, check=True).stdout)
    return [a["local"] + ("%lo" if a["scope"] == "link" else "") for row in rows for a in row["addr_info"]]


def test_addresses_that_are_nobodys_business(api, box, wide, world):
    """Under any rules: private, link-local, shared, metadata, multicast, this machine, in every form. At once."""
    v4 = ["10.213.77.1", "172.29.213.1", "192.168.213.1", "100.127.213.1", "169.254.213.1", "169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16",
          "0.0.0.1", "224.213.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "198.51.100.200", "203.0.113.250", world.shut, world.host]
    v6 = ["fd00:ec2::254", "fdab:213::1", "fe80::213%lo", "ff02::1%lo", "ff0e::213", "2001:db8:ffff::1", "100::1", "::2", "2001::1"]
    v6 += [f"{form}{a}" for a in ("10.213.77.1", "169.254.169.254", world.host) for form in ("::ffff:", "64:ff9b::", "::")]
    v6 += ["2002:7f00:1::", "2002:a9fe:a9fe::", "2002:ad5:4d01::", "64:ff9b:1::a9fe:a9fe"]
    places = [a for a in [*v4, *v6, *own_addresses()] if not a.startswith("127.") and a != "::1"]
    for who in (box, wide):
        got = inside(api, who, "print(json.dumps([connect(a, 443) for a in arg(1)]))", places)
        assert not [p for p, g in zip(places, got) if not g.startswith(("ConnectionResetError", "ConnectionRefused", "OSError"))], list(zip(places, got))
    told = log_of(api, wide)
    assert told and not [e for e in told if e["verdict"] != "denied" or e["reason"] != "reserved_address"]


def test_loopback_and_every_spelling_of_it_is_the_sandboxes_own(api, net, box, wide):
    spellings = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "0", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1",
                 "127.255.255.254", "localhost.", "LOCALHOST"]
    for who in (box, wide):
        got = inside(api, who, "print(json.dumps([connect(a, arg(2)) for a in arg(1)]))", spellings, net.port)
        assert not [g for g in got if g.startswith("open")], list(zip(spellings, got))


def test_spellings_of_an_address_without_a_name(api, box, world):
    """A server that exists and answers, and that no rule speaks of: not by any way to write its address."""
    n = int(ipaddress.ip_address(world.evil))
    parts = world.evil.split(".")
    spellings = [world.evil, str(n), hex(n), "0%o" % n, ".".join(hex(int(p)) for p in parts), ".".join("0%o" % int(p) for p in parts),
                 f"{parts[0]}.{parts[1]}.{int(parts[2]) * 256 + int(parts[3])}", f"::ffff:{world.evil}", f"64:ff9b::{world.evil}"]
    got = inside(api, box, "print(json.dumps([http(a, 80, b'GET /spelled HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n') for a in arg(1)]))", spellings)
    assert all('"network_denied"' in g for g in got), list(zip(spellings, got))
    assert not world.served("/spelled")


def test_this_machine_and_its_daemon(api, net, box, wide, world):
    """A port of this machine that does listen, on an address that a sandbox can write."""
    with socket.create_server((world.host, 0)) as server:
        port = server.getsockname()[1]
        for who in (box, wide):
            for p in (port, net.port, 7070):
                got = inside(api, who, "print(json.dumps(connect(arg(1), arg(2))))", world.host, p)
                assert got.startswith("ConnectionReset"), got
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_neighbours(api, box, wide):
    """Two sandboxes have the same addresses and never meet; a preview's name is none inside."""
    api.start(wide, ["python3", "-m", "http.server", "9000"])
    until(lambda: inside(api, wide, "print(json.dumps(connect('127.0.0.1', 9000)))").startswith("open"), "the neighbour's server")
    for place in ("127.0.0.1", "::1", "10.0.0.1", "192.0.2.53", "192.0.2.1", wide, f"9000-{wide}.localhost", f"{wide}.warren"):
        got = inside(api, box, "print(json.dumps(connect(arg(1), 9000)))", place)
        assert not got.startswith("open"), (place, got)


# -- names

def test_whoever_is_asked_we_answer(api, box, world):
    """Any resolver, over UDP and TCP, also one that does not exist; encrypted ones are not there at all."""
    before = len(world.resolver.asked)
    servers = [world.dns, world.evil, "198.51.100.200", "10.213.77.53", "2001:db8:ffff::53", "192.0.2.53"]
    for over in ("udp", "tcp"):
        got = inside(api, box, "print(json.dumps([[ask(s, n, over=arg(2)) for n in ('good.test', 'evil.test')] for s in arg(1)]))", servers, over)
        assert got == [[[0, [world.web]], [3, []]]] * len(servers), got
    assert "evil.test" not in world.resolver.asked[before:]
    got = inside(api, box, "print(json.dumps([connect(a, 853) for a in arg(1)]))", servers)
    assert not [g for g in got if g.startswith("open")], got


def test_nothing_but_addresses_passes(api, box, world):
    """TXT, NULL, ANY, MX, SRV, HTTPS, transfers and the like are no tunnel; odd questions are not passed on."""
    before = len(world.resolver.asked)
    kinds = [16, 10, 255, 15, 33, 65, 64, 252, 251, 2, 6, 12, 43, 257, 0, 65535]
    got = inside(api, box, "print(json.dumps([ask('192.0.2.53', 'good.test', kind=k) for k in arg(1)]))", kinds)
    assert all(g in ([0, []], [4, []], [1, []]) for g in got), list(zip(kinds, got))
    odd = inside(api, box, "print(json.dumps([ask_raw(m) for m in odd_questions()]))")
    assert all(o is None or o[0] != 0 for o in odd), odd
    assert world.resolver.asked[before:] == []


def test_names_that_carry_data(api, box, world):
    """What no rule could let through is not asked for, however it is spelled; near misses are misses."""
    before = len(world.resolver.asked)
    long = "x" * 63
    names = [f"{long}.{long}.{long}.evil.test", "secret.evil.test", "good.test.evil.test", "agood.test", "goodxtest", "good.test.", "xn--god-nqa.test",
             "good", "test", "hostile.test", "metadata.google.internal", "metadata", "instance-data.ec2.internal", "localhost.evil.test",
             "1.0.0.127.in-addr.arpa", "kubernetes.default.svc.cluster.local", "host.docker.internal", "*.good.test", "a..good.test"]
    got = inside(api, box, "print(json.dumps([ask('192.0.2.53', n) for n in arg(1)]))", names)
    passed = [n for n, g in zip(names, got) if g and g[0] == 0 and g[1]]
    assert passed == ["good.test."], list(zip(names, got))
    assert set(world.resolver.asked[before:]) == {"good.test"}
    # A domain to search in is a way to say something, too.
    inside(api, box, "open('/etc/resolv.conf', 'w').write('search corp.internal evil.test\\nnameserver 192.0.2.53\\noptions ndots:5\\n')\n"
           "print(json.dumps(connect('secret', 80)))")
    assert set(world.resolver.asked[before:]) == {"good.test"}
    inside(api, box, "open('/etc/resolv.conf', 'w').write('nameserver 192.0.2.53\\n')\nprint(1)")


INWARD = ["private", "loop", "zero", "host", "meta", "cloud", "link", "group", "mapped", "nat64", "sixtofour", "unique", "v6loop", "broadcast", "many",
          "inward", "astray"]


def test_answers_that_lead_inside_are_dropped(api, box, world):
    """Rebinding: an allowed name with an address out of reach, or an alias of one."""
    got = inside(api, box, "print(json.dumps([[ask('192.0.2.53', n + '.hostile.test', kind=k) for k in (1, 28)] for n in arg(1)]))", INWARD)
    assert all(not a[1] for pair in got for a in pair), list(zip(INWARD, got))
    assert inside(api, box, "print(json.dumps([connect(n + '.hostile.test', 80) for n in arg(1)]))", INWARD) == ["gaierror"] * len(INWARD)
    # Of a mixture, what may be reached; of forgeries, none; what did not fit comes over TCP.
    assert inside(api, box, "print(json.dumps([ask('192.0.2.53', n + '.hostile.test') for n in ('mixed', 'forged', 'fine', 'cut')]))") == \
        [[0, [world.web]]] * 4


def routed(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        return s.connect_ex((address, 9)) == 0


def test_a_family_without_a_way_is_not_told_of(api, box, world):
    """On a machine with IPv4 alone: who were given an IPv6 address too would find it open, and then be cut."""
    if not routed("198.41.0.4"):
        pytest.skip("this machine has no way to anywhere")
    route = ["unreachable", "2a01:dead:beef::/48"]
    subprocess.run(["ip", "-6", "route", "add", *route], check=True)
    try:
        got = inside(api, box, "print(json.dumps([ask('192.0.2.53', 'half.hostile.test', kind=k) for k in (1, 28)]))")
    finally:
        subprocess.run(["ip", "-6", "route", "del", *route], check=True)
    assert got == [[0, [world.web]], [0, []]]


def test_a_name_that_changes_its_mind(api, box, world):
    """TTL 0, good first and this machine later: the second answer is dropped, the first stays what it was."""
    script = ("import time\nfirst = ask('192.0.2.53', 'rebind.hostile.test')\nwhile True:\n"
              "    last = ask('192.0.2.53', 'rebind.hostile.test')\n    if last != first: break\n"
              "print(json.dumps([first, last, http(first[1][0], 80, b'GET / HTTP/1.1\\r\\nHost: rebind.hostile.test\\r\\nConnection: close\\r\\n\\r\\n'),"
              " connect('127.0.0.1', arg(1)), connect('rebind.hostile.test', arg(1))]))")
    first, last, page, loop, again = inside(api, box, script, 7070)
    assert first == [0, [world.web]] and last == [3, []] and "page of rebind.hostile.test" in page
    assert not loop.startswith("open") and again == "gaierror"


# -- HTTP

def test_hosts_in_disguise(api, box, world):
    """Every way to say one host and mean another, on a connection to an address that serves both."""
    good = b"GET /trick-%d HTTP/1.1\r\n"
    tricks = [
        b"GET http://other.test/trick-%d HTTP/1.1\r\nHost: good.test\r\n\r\n", b"GET http://good.test@other.test/trick-%d HTTP/1.1\r\nHost: good.test\r\n\r\n",
        good + b"Host: good.test\r\nHost: other.test\r\n\r\n", good + b"Host: other.test\r\nHost: good.test\r\n\r\n", good + b"Host: good.test@other.test\r\n\r\n",
        good + b"Host: other.test:80\r\n\r\n", good + b"Host: other.test.\r\n\r\n", good + b"Host: good.test:80@other.test\r\n\r\n", good + b"Host: good.test other.test\r\n\r\n",
        good + b"Host: good.test,other.test\r\n\r\n", good + b"Host: other.test#good.test\r\n\r\n", good + b"Host: other.test/good.test\r\n\r\n",
        good + b"Host: good.test\0.other.test\r\n\r\n", good + b"Host: other.test%00.good.test\r\n\r\n", good + b"Host: g\xc3\xb6od.test\r\n\r\n", good + "Host: gооd.test\r\n\r\n".encode(),
        good + b"Host : other.test\r\nHost: good.test\r\n\r\n", good + b" Host: other.test\r\nHost: good.test\r\n\r\n", good + b"Host: good.test\r\n other.test\r\n\r\n",
        good + b"X: y\nHost: other.test\r\nHost: good.test\r\n\r\n", good + b"X: y\rHost: other.test\r\nHost: good.test\r\n\r\n", good + b"\r\n", good + b"Host:\r\n\r\n",
        b"GET /trick-%d HTTP/1.0\r\n\r\n", b"GET /trick-%d\r\n\r\n", b"GET /trick-%d HTTP/0.9\r\n\r\n", b"GET /trick-%d HTTP/2.0\r\nHost: good.test\r\n\r\n",
        b"\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n", b" GET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n", b"GET\t/trick-%d\tHTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"GET /trick-%d  HTTP/1.1\r\nHost: other.test\r\n\r\n", b"GET /trick-%d http/1.1\r\nHost: other.test\r\n\r\n", b"get /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"CONNECT other.test:80 HTTP/1.1\r\nHost: good.test\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n/trick-%d",
        good + b"Host: [::1]\r\n\r\n", good + b"Host: " + world.web.encode() + b"\r\n\r\n", good + b"Host: 0x7f.1\r\n\r\n", good + b"Host: fe80::1%25lo\r\n\r\n",
        # A second request behind the first, as itself and smuggled.
        b"GET / HTTP/1.1\r\nHost: good.test\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n0;x=\n\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: +0\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0, 0\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        # What follows an upgrade is for anybody.
        b"GET / HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /trick-%d HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n/trick-%d",
    ]
    tricks = [t.replace(b"trick-%d", b"trick-%d" % i) for i, t in enumerate(tricks)]
    got = inside(api, box, "print(json.dumps([http('good.test', 80, t.encode('latin-1')) for t in arg(1)]))", [t.decode("latin-1") for t in tricks])
    assert not [t for t, g in zip(tricks, got) if "other.test by" in g]
    assert not world.served("trick-"), world.served("trick-")
    # The same in pieces of one byte is the same.
    got = inside(api, box, "print(json.dumps([http('good.test', 80, arg(1).encode(), piece=1), http('good.test', 80, arg(2).encode(), piece=1)]))",
                 "GET / HTTP/1.1\r\nHost: Good.Test\r\nConnection: close\r\n\r\n", "GET /trick-x HTTP/1.1\r\nHost: other.test\r\n\r\n")
    assert "page of good.test" in got[0] and "network_denied" in got[1] and not world.served("trick-")


def test_requests_in_the_clothes_of_another_protocol(api, box, world):
    """Where any protocol may be spoken, what some server takes for a request is not passed on as something else."""
    host = b" HTTP/1.1\r\nHost: other.test\r\n\r\n"
    tricks = [b"GET http://other.test/\r\n", b"GET /\r\n", b"A" * 40 + b" /" + host, b"GET\t/" + host, b"\vGET /" + host, b"GET\x1c/\x1c" + host[1:],
              b"\0GET /" + host, b"\0\0\r\n\0GET /" + host, b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 8081\r\nGET /" + host, b"PROXY UNKNOWN\r\nGET /" + host,
              b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\x9c\x40\x1f\x91GET /" + host,
              b"GET / RTSP/1.0\r\nHost: other.test\r\n\r\n", b"POST / RTSP/1.0\r\nHost: other.test\r\n\r\n"]
    script = "print(json.dumps([http('odd.good.test', 8081, t.encode('latin-1'), piece=p) for t in arg(1) for p in (0, 1)]))"
    got = inside(api, box, script, [t.decode("latin-1") for t in tricks])
    assert all(g == "ConnectionResetError" or "network_denied" in g for g in got), got
    assert "page of odd.good.test" in inside(api, box, script, ["GET / HTTP/1.1\r\nHost: odd.good.test\r\n\r\n"])[0]


def test_an_allowed_server_is_no_proxy(api, box, world):
    """On a port where a proxy listens: tunnels and whole URLs do not pass, whatever it would do with them."""
    heard = []

    def proxy(s):
        heard.append(s.recv(4096))
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    world.serve_each(world.odd, 8080, proxy)
    asks = ["CONNECT evil.test:443 HTTP/1.1\r\nHost: odd.good.test\r\n\r\n", "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: odd.good.test:8080\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: odd.good.test\r\n\r\n", "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"]
    got = inside(api, box, "print(json.dumps([http('odd.good.test', 8080, t.encode()) for t in arg(1)]))", asks)
    assert all("network_denied" in g for g in got) and not any(heard), (got, heard)


# -- TLS

def test_hellos_in_disguise(api, box, wide, world):
    """A handshake is passed on if it names, once and readably, a host that this address was resolved for."""
    got = inside(api, box, "print(json.dumps({k: hello('good.test', 443, *v) for k, v in hellos().items()}))")
    passed = {k for k, g in got.items() if g.startswith("handshake")}
    assert passed == {"plain", "byte by byte", "in records of one byte", "upper case"}, got
    refused = {k: g for k, g in got.items() if k not in passed}
    assert all(g in ("ConnectionResetError", "") for g in refused.values()), refused
    assert "encrypted_name" in {e["reason"] for e in log_of(api, box) if e["name"] == "good.test"}
    # Where no rule speaks of names, none can be hidden.
    assert inside(api, wide, "print(json.dumps(hello('good.test', 443, *hellos()['an encrypted hello inside'])))") == "handshake"
    # The right name at an address that is not its own, and the other way round.
    got = inside(api, box, "print(json.dumps([hello(arg(1), 443, h) for h in (client_hello('good.test'), client_hello('evil.test'), client_hello(arg(1)))]))", world.evil)
    assert got == ["ConnectionResetError"] * 3, got


def test_hellos_behind_what_servers_read_over(api, box, world):
    """Where any protocol may be spoken, no record before a hello makes something else of it."""
    def answer(s):
        with world.context.wrap_socket(s, server_side=True) as tls:
            tls.sendall(b"hi")
    world.serve_each(world.odd, 8444, answer)
    script = "print(json.dumps([hello('odd.good.test', 8444, bytes(before) + client_hello(arg(2)), piece=p) for before in arg(1) for p in (0, 1)]))"
    warning, change, empty = [21, 3, 1, 0, 2, 1, 90], [20, 3, 1, 0, 0], [22, 3, 1, 0, 0]
    got = inside(api, box, script, [warning, [21, 0, 0, *warning[3:]], change, empty, warning + change], "other.test")
    assert set(got) == {"ConnectionResetError"}, got
    assert inside(api, box, script, [[]], "odd.good.test") == ["handshake"] * 2


# -- other protocols

def test_datagrams(api, box, wide, world):
    """QUIC, NTP, SSDP, DNS over QUIC, and a datagram from a port that is not ours: refused at once, and nothing leaves."""
    server = world.listen(world.web, 443, socket.SOCK_DGRAM)
    places = [(world.web, 443), (world.web, 853), (world.evil, 123), ("239.255.255.250", 1900), (world.web6, 443), ("169.254.169.254", 80), (world.host, 7070), (world.web, 53000)]
    for who in (box, wide):
        got = inside(api, who, "print(json.dumps([datagram(a, p) for a, p in arg(1)]))", places)
        assert not [g for g in got if g.startswith("heard")], got
    server.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.recv(1)
    server.close()


def test_raw_sockets_reach_nobody(api, box, world):
    """ICMP, hand-made packets with any source, fragments, options, Ethernet frames: not to be had, or they stay inside."""
    got = inside(api, box, "print(json.dumps(raw_attempts(arg(1), arg(2))))", world.web, world.host)
    assert all(got[k].startswith(("PermissionError", "OSError")) for k in ("packet", "packet dgram", "xdp", "vsock", "sctp", "netfilter", "mptcp")), got
    # Groups beyond half of all numbers cannot be let to ping: the 4,097th sandbox at once is the first with such ids.
    high = int(api.out(box, ["cat", "/proc/self/gid_map"]).split()[1]) >= 1 << 31
    assert ("EACCES" if high else "EHOSTUNREACH") in got["answered ping"], got
    # The watched cable says whether what could be sent went anywhere (its own test: web gets no protocol but TCP).


def test_changing_the_network_from_inside(api, box, world):
    """Root inside may break its own network at most; there is no setting in which it is open."""
    attempts = [
        "ip route flush table local", "ip route del local default dev lo table local", "ip -6 route flush table local", "ip route add default via 192.0.2.1",
        "ip route replace default dev lo", "ip rule add from all lookup main pref 0", "ip rule del pref 0", "ip addr add 203.0.113.250/32 dev lo", "ip addr flush dev lo",
        "ip link set lo mtu 68", "ip link set lo arp off", "ip link add d0 type dummy", "ip link add v0 type veth peer name v1", "ip link add m0 link lo type macvlan",
        "ip tuntap add t0 mode tun", "ip netns add x", "ip link set lo netns 1", "unshare -n true", "unshare -Urn true", "nsenter -t 1 -n true", "sysctl -w net.ipv4.ip_forward=1",
        "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind", "ip link set lo down", "ip link set lo up", "ip tcp_metrics flush", "ip xfrm state flush", "ip neigh add 10.213.77.1 lladdr 0:0:0:0:0:1 dev lo",
    ]
    for attempt in attempts:
        api.exec(box, attempt)
        got = inside(api, box, "print(json.dumps([connect(arg(1), 443), connect('10.213.77.1', 443), ask('192.0.2.53', 'evil.test', patience=2)]))", world.evil)
        assert not got[0].startswith("open") and not got[1].startswith("open") and (not got[2] or not got[2][1]), (attempt, got)
    assert "page of good.test" in inside(api, box, "print(json.dumps(http('good.test', 80, b'GET / HTTP/1.0\\r\\nHost: good.test\\r\\n\\r\\n')))")


def test_options_of_sockets(api, box, world):
    """Marks, devices, transparent and foreign sources, our own sockets' places, system calls for namespaces and BPF."""
    got = inside(api, box, "print(json.dumps(option_attempts(arg(1))))", world.evil)
    assert not [k for k, g in got.items() if g.startswith("open")], got
    assert all(got[k] == "PermissionError" for k in ("bpf", "setns", "unshare", "mark")), got


# -- rules that name what is denied, and proxies

def test_all_but_one(api, world):
    """Rules that deny a name and allow the rest: a bare address is still an address, the name stays denied."""
    sandbox = make_box(api, {"rules": ["deny other.test", "allow *"]})
    try:
        asks = [(world.web, f"GET / HTTP/1.1\r\nHost: {world.web}\r\nConnection: close\r\n\r\n"), (world.web, "GET / HTTP/1.0\r\n\r\n"),
                ("good.test", "GET / HTTP/1.0\r\nHost: good.test\r\n\r\n"), (world.web, "GET /denied-name HTTP/1.0\r\nHost: other.test\r\n\r\n")]
        got = inside(api, sandbox, "print(json.dumps([http(a, 80, t.encode()) for a, t in arg(1)]))", asks)
        assert all(g.startswith("HTTP/1.1 200") for g in got[:3]) and "network_denied" in got[3], got
        got = inside(api, sandbox, "print(json.dumps([hello(arg(1), 443, client_hello(n)) for n in ('good.test', None, 'other.test')]))", world.web)
        assert got == ["handshake", "handshake", "ConnectionResetError"], got
        assert not world.served("/denied-name")
    finally:
        api.delete(sandbox)


def test_a_proxy_of_its_own_is_no_way_inside(api, net, world):
    """It is at an address that a sandbox may reach, or nothing is connected: this machine, its daemon, what a lie leads to."""
    with socket.create_server((world.host, 0)) as server:
        port = server.getsockname()[1]
        places = [f"http://127.0.0.1:{net.port}", f"http://{world.host}:{port}", f"socks5://{world.host}:{port}", f"http://[{world.host6}]:{port}", "http://169.254.169.254:80",
                  "socks5h://private.hostile.test:1080", "http://loop.hostile.test:%d" % net.port, "http://host.hostile.test:%d" % port]
        sandbox = make_box(api, {"preset": "open", "proxy": places[0]})
        try:
            for place in places:
                api.ok("PATCH", f"/v1/sandboxes/{sandbox}", {"network": {"preset": "open", "proxy": place}})
                got = inside(api, sandbox, "print(json.dumps(hello(arg(1), 443, client_hello('good.test'))))", world.web)
                assert got == "ConnectionResetError", (place, got)
            def errors():
                return [e["error"] for e in log_of(api, sandbox) if e["kind"] == "connection"]
            until(lambda: len(errors()) == len(places), "an entry of each")
            assert set(errors()) <= {"EACCES", "EHOSTDOWN"}, errors()
        finally:
            api.delete(sandbox)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
