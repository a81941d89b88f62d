"""What test_network_attacks runs inside a sandbox: attempts, each of which says what came of it."""

KIT = r'''
import ctypes, errno, json, os, random, select, socket, ssl, struct, sys, time

PATIENCE = 60  # far more than anything here takes: a time-out is a failure


def arg(n):
    return json.loads(sys.argv[n])


def name_of(e):
    return "gaierror" if isinstance(e, socket.gaierror) else type(e).__name__


def connect(host, port):
    """"open" and what the server said, "silent", or the error. A refusal may come with the first byte that is sent."""
    try:
        with socket.create_connection((host, port), timeout=PATIENCE) as s:
            s.sendall(b"x\r\n\r\n")
            got = s.recv(100)
            return "open " + repr(got) if got else "closed"
    except Exception as e:
        return name_of(e)


def http(host, port, data, piece=0):
    """What came back, or the error. Who is cut while it still speaks may yet hear why."""
    got, lost = b"", None
    try:
        with socket.create_connection((host, port), timeout=PATIENCE) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for i in range(0, len(data), piece or len(data)):
                    s.sendall(data[i:i + (piece or len(data))])
                s.shutdown(socket.SHUT_WR)
            except OSError as e:
                if e.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                    raise
                lost = "ConnectionResetError"
            while more := s.recv(65536):
                got += more
    except Exception as e:
        lost = name_of(e)
    return got.decode("latin-1") or lost or ""


# -- DNS

def question(name, kind=1, number=7, flags=0x0100, klass=1):
    labels = name.rstrip(".").split(".") if name.rstrip(".") else []
    body = b"".join(bytes([len(l)]) + l.encode() for l in labels) + b"\0"
    return struct.pack(">HHHHHH", number, flags, 1, 0, 0, 0) + body + struct.pack(">HH", kind, klass)


def parse(m):
    """The code and the addresses."""
    rcode, count = m[3] & 15, struct.unpack(">H", m[6:8])[0]
    at, found = 12, []
    if struct.unpack(">H", m[4:6])[0]:
        while m[at]:
            at += 1 + m[at]
        at += 5
    for _ in range(count):
        while m[at] and m[at] < 0xc0:
            at += 1 + m[at]
        at += 2 if m[at] >= 0xc0 else 1
        kind, _, _, n = struct.unpack(">HHIH", m[at:at + 10])
        at += 10
        if kind in (1, 28):
            found.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, m[at:at + n]))
        else:
            found.append("record of type %d" % kind)
        at += n
    return [rcode, found]


def ask_raw(message, server="192.0.2.53", over="udp", patience=PATIENCE):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM if over == "udp" else socket.SOCK_STREAM) as s:
            s.settimeout(patience)
            s.connect((server, 53))
            if over == "udp":
                s.send(message)
                return parse(s.recv(4096))
            s.sendall(struct.pack(">H", len(message)) + message)
            n = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))[0]
            return parse(s.recv(n, socket.MSG_WAITALL))
    except Exception:
        return None


def ask(server, name, kind=1, over="udp", patience=PATIENCE):
    if any(not 0 < len(l) < 64 for l in name.rstrip(".").split(".")):
        patience = 2  # not worth an answer
    return ask_raw(question(name, kind), server, over, patience)


def odd_questions():
    """Not what we pass on: other classes and operations, two questions, none, answers, pointers, noise. (Followed
    by a good one where nobody would answer, so that the wait is short.)"""
    plain = question("good.test")
    two = plain[:4] + struct.pack(">HHHH", 2, 0, 0, 0) + plain[12:] + plain[12:]
    return [question("good.test", klass=3), question("good.test", klass=255), question("good.test", flags=0x1000), question("good.test", flags=0x2800), two,
            plain[:4] + struct.pack(">HHHH", 1, 1, 0, 0) + plain[12:]]


# -- TLS

def client_hello(name):
    """A real one."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(into, out, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def with_extensions(hello, change):
    """The same hello with its extensions, a list of (type, data), changed."""
    body = hello[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + struct.unpack(">H", body[at:at + 2])[0]
    at += 1 + body[at]
    rest, found = body[at + 2:], []
    while rest:
        kind, n = struct.unpack(">HH", rest[:4])
        found.append((kind, rest[4:4 + n]))
        rest = rest[4 + n:]
    packed = b"".join(struct.pack(">HH", k, len(d)) + d for k, d in change(found))
    body = body[:at] + struct.pack(">H", len(packed)) + packed
    return record(b"\x01" + struct.pack(">I", len(body))[1:] + body)


def record(message, kind=22):
    return bytes([kind, 3, 1]) + struct.pack(">H", len(message)) + message


def sni(*names):
    entries = b"".join(b"\0" + struct.pack(">H", len(n)) + n for n in names)
    return struct.pack(">H", len(entries)) + entries


def renamed(*names):
    return with_extensions(client_hello("good.test"), lambda all: [(k, sni(*names) if k == 0 else d) for k, d in all])


def hellos():
    """By name: the bytes, and the size of the pieces that they are sent in."""
    good = client_hello("good.test")
    message = good[5:]
    return {
        "plain": (good,),
        "byte by byte": (good, 1),
        "in records of one byte": (b"".join(record(message[i:i + 1]) for i in range(len(message))),),
        "upper case": (renamed(b"GOOD.Test"),),
        "an encrypted hello inside": (with_extensions(good, lambda all: all + [(0xfe0d, b"\0" * 200)]),),
        "no name": (client_hello(None),),
        "another name": (client_hello("other.test"),),
        "another name, byte by byte": (client_hello("other.test"), 1),
        "two names in one list": (renamed(b"good.test", b"other.test"),),
        "two lists": (with_extensions(good, lambda all: all + [(0, sni(b"other.test"))]),),
        "two lists, good last": (with_extensions(client_hello("other.test"), lambda all: all + [(0, sni(b"good.test"))]),),
        "an empty list": (renamed(),),
        "an empty name": (renamed(b""),),
        "a dot at the end": (renamed(b"good.test."),),
        "a NUL in it": (renamed(b"good.test\0.other.test"),),
        "a blank in it": (renamed(b"good.test other.test"),),
        "beyond ASCII": (renamed("g\u00f6od.test".encode()),),
        "an address": (renamed(b"127.0.0.1"),),
        "ESNI": (with_extensions(good, lambda all: all + [(0xffce, b"\0" * 200)]),),
        "an encrypted hello behind another name": (with_extensions(client_hello("other.test"), lambda all: all + [(0xfe0d, b"\0" * 200)]),),
        "a second hello in the record": (record(message + client_hello("other.test")[5:]),),
        "a lying length": (good[:5] + b"\x01\x00\x00\x10" + message[4:],),
        "cut": (good[:60],),
        "not a hello": (record(b"\x02" + message[1:]),),
        "application data": (record(message, 23),),
        "an alert first": (record(b"\x01\x00", 21) + good,),
        "an empty record first": (record(b"") + good,),
        "version 2": (b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + b"\x01\x00\x80" * 7 + b"c" * 16,),
        "huge": (with_extensions(good, lambda all: [(21, b"\0" * 16000)] + all),),
        "noise": (bytes(random.Random(7).randbytes(600)),),
        "HTTP": (b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",),
        "SSH": (b"SSH-2.0-x\r\n",),
    }


def hello(host, port, data, piece=0):
    """"handshake" if a server answered it with one."""
    try:
        with socket.create_connection((host, port), timeout=PATIENCE) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(0, len(data), piece or len(data)):
                s.sendall(data[i:i + (piece or len(data))])
            if data[:60] == data:
                s.shutdown(socket.SHUT_WR)
            got = s.recv(100)
            if got[:1] == b"\x16":
                return "handshake"
            return "answered" if got and not b"network_denied" in got and not got.startswith(b"HTTP/1.1 403") else ""
    except Exception as e:
        return "ConnectionResetError" if isinstance(e, (ConnectionResetError, BrokenPipeError)) else name_of(e)


# -- below TCP

def datagram(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.settimeout(0.5)  # groups give no answer
            s.connect((address, port))
            s.send(b"x" * 1200)
            return "heard " + repr(s.recv(100))
        except Exception as e:
            return name_of(e)


def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def packet(source, target, protocol, payload, fragment=0, options=b""):
    head = struct.pack(">BBHHHBBH4s4s", 0x40 | (5 + len(options) // 4), 0, 20 + len(options) + len(payload), 7, fragment, 64, protocol, 0,
                       socket.inet_aton(source), socket.inet_aton(target)) + options
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def tried(work):
    try:
        return work() or "done"
    except Exception as e:
        return type(e).__name__ + " " + errno.errorcode.get(getattr(e, "errno", 0) or 0, "")


def raw_attempts(target, host):
    udp = struct.pack(">HHHH", 4000, 443, 12, 0) + b"data"
    tcp = struct.pack(">HHIIBBHHH", 4000, 443, 1, 0, 0x50, 2, 1024, 0, 0)
    echo = b"\x08\x00\xf7\xff\x00\x00\x00\x00"

    def raw(*packets):
        def go():
            with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as s:
                s.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
                for p in packets:
                    s.sendto(p, (target, 0))
        return go

    def ping(kind):
        def go():
            with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as s:
                s.sendto(echo, (target, 0))
        return go

    def answered():
        """Every address is the sandbox's own: its kernel must not answer in another's name."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as s:
            s.settimeout(PATIENCE)
            s.connect((target, 0))
            s.send(echo)
            return "open" if s.recv(2000) else "closed"

    def open_one(*how):
        return lambda: socket.socket(*how).close()
    source_route = b"\x83\x07\x04" + socket.inet_aton(target) + b"\x00"
    attempts = {
        "answered ping": answered, "ping": ping(socket.SOCK_DGRAM), "raw ping": ping(socket.SOCK_RAW),
        "udp": raw(packet("203.0.113.250", target, 17, udp)), "tcp": raw(packet("10.213.77.1", target, 6, tcp)), "as the host": raw(packet(host, target, 17, udp)),
        "fragments": raw(packet("203.0.113.250", target, 17, udp + b"y" * 4, 0x2000), packet("203.0.113.250", target, 17, b"z" * 8, 2)),
        "options": raw(packet("203.0.113.250", target, 17, udp, options=source_route)), "gre": raw(packet("203.0.113.250", target, 47, b"\0" * 8)),
        "ipip": raw(packet("203.0.113.250", target, 4, packet("10.213.77.1", target, 17, udp))),
        "icmp6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).sendto(b"\x80\0\0\0\0\0\0\0", ("2001:db8:ffff::1", 0)) and None,
        "packet": open_one(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)), "packet dgram": open_one(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)),
        "xdp": open_one(44, socket.SOCK_RAW, 0), "vsock": open_one(40, socket.SOCK_STREAM, 0), "sctp": open_one(socket.AF_INET, socket.SOCK_STREAM, 132),
        "netfilter": open_one(socket.AF_NETLINK, socket.SOCK_RAW, 12), "mptcp": open_one(socket.AF_INET, socket.SOCK_STREAM, 262),
    }
    return {k: tried(v) for k, v in attempts.items()}


def option_attempts(target):
    libc = ctypes.CDLL(None, use_errno=True)

    def reach(prepare, address=target, family=socket.AF_INET):
        def go():
            with socket.socket(family, socket.SOCK_STREAM) as s:
                prepare(s)
                s.settimeout(PATIENCE)
                s.connect((address, 443))
                s.sendall(b"x\r\n\r\n")
                return "open" if s.recv(10) else "closed"
        return go

    def call(number, *args):
        def go():
            if libc.syscall(number, *args) < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
            return "open"
        return go

    def take_place(kind, port):
        """Beside the sockets that steer us: to be given what comes for them."""
        def go():
            with socket.socket(socket.AF_INET6, kind) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                s.setsockopt(socket.SOL_IP, 15, 1)
                s.bind(("::ffff:192.0.2.53", port))
                if kind == socket.SOCK_STREAM:
                    s.listen()
                s.settimeout(1)
                ask("192.0.2.53", "good.test")
                connect(target, 443)
                try:
                    s.recv(100) if kind == socket.SOCK_DGRAM else s.accept()
                except TimeoutError:
                    return "nothing came"
                return "open: it was given something"
        return go
    fd = os.open("/proc/1/ns/net" if os.access("/proc/1/ns/net", os.R_OK) else "/proc/self/ns/net", os.O_RDONLY)
    attempts = {
        "mark": reach(lambda s: s.setsockopt(socket.SOL_SOCKET, 36, 1)),
        "device": reach(lambda s: s.setsockopt(socket.SOL_SOCKET, 25, b"lo\0")),
        "transparent": reach(lambda s: s.setsockopt(socket.SOL_IP, 19, 1)),
        "source": reach(lambda s: (s.setsockopt(socket.SOL_IP, 15, 1), s.bind(("203.0.113.250", 0)))),
        "as loopback": reach(lambda s: s.bind(("127.0.0.1", 0))),
        "low port": reach(lambda s: s.bind(("0.0.0.0", 4))),
        "source route": reach(lambda s: s.setsockopt(socket.SOL_IP, socket.IP_OPTIONS, b"\x83\x07\x04" + socket.inet_aton(target) + b"\0")),
        "fast open": reach(lambda s: s.setsockopt(socket.IPPROTO_TCP, 30, 1)),
        "dont route": reach(lambda s: s.setsockopt(socket.SOL_SOCKET, 5, 1)),
        "their tcp": take_place(socket.SOCK_STREAM, 4), "their udp": take_place(socket.SOCK_DGRAM, 53),
        "bpf": call(321, 0, 0, 0), "setns": call(308, fd, 0x40000000), "unshare": call(272, 0x50000000),
    }
    got = {}
    for k, v in attempts.items():
        got[k] = tried(v).split()[0] if k in ("bpf", "setns", "unshare", "mark") else tried(v)
    return got
'''
