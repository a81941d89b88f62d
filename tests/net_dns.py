"""A resolver that lies when asked for names under hostile.test, and passes on everything else.

Behind it is a real server; what anybody asks for, over UDP or TCP, is written down.
"""
import collections
import contextlib
import socket
import struct
import threading

A, NS, CNAME, TXT, AAAA = 1, 2, 5, 16, 28


def read_question(message):
    """The name as it was sent in lower case, the type, and where the question ends."""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    return ".".join(labels).lower(), struct.unpack(">H", message[at + 1:at + 3])[0], at + 5


def wire_name(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def record(kind, data, owner=b"\xc0\x0c", ttl=0):
    return owner + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def address(text, **more):
    if ":" in text:
        return record(AAAA, socket.inet_pton(socket.AF_INET6, text), **more)
    return record(A, socket.inet_aton(text), **more)


def answer(question, records=(), rcode=0, flags=0, number=None, body=None):
    """A reply to that question; `number` and `body` are those of another where somebody forges."""
    end = read_question(question)[2]
    head = question[:2] if number is None else struct.pack(">H", number)
    return (head + struct.pack(">HHHHH", 0x8180 | flags | rcode, 1, len(records), 0, 0)
            + (body or question[12:end]) + b"".join(records))


class Liar:
    """What is said of names under hostile.test. `here` is an address that may be reached, `evil` one that
    may not by its name, `host` this machine's own."""

    def __init__(self, here, evil, host):
        self.counts = collections.Counter()
        self.addresses = {
            "private": ["10.213.77.1"], "loop": ["127.0.0.1"], "zero": ["0.0.0.0"], "host": [host],
            "meta": ["169.254.169.254", "fd00:ec2::254"], "cloud": ["100.100.100.200"],
            "link": ["169.254.7.7", "fe80::7"], "group": ["224.0.0.7", "ff02::7"],
            "mapped": ["::ffff:127.0.0.1"], "nat64": ["64:ff9b::7f00:1"], "sixtofour": ["2002:7f00:1::"],
            "unique": ["fd00::2"], "v6loop": ["::1"], "broadcast": ["255.255.255.255"],
            "half": [here, "2a01:dead:beef::1"], "mixed": ["10.213.77.1", here, "127.0.0.1"], "evilplace": [evil], "fine": [here],
            "many": [f"10.213.{n // 250}.{n % 250}" for n in range(60)],
        }
        self.here, self.evil = here, evil

    def replies(self, question):
        """The datagrams that are sent for it, in this order."""
        name, kind, _ = read_question(question)
        first = name.split(".")[0]
        self.counts[first] += 1
        special = getattr(self, "say_" + first, None)
        if special:
            return special(question, kind)
        known = self.addresses.get(first)
        if known is None:
            return [answer(question, rcode=3)]
        return [answer(question, [address(a) for a in known if (":" in a) == (kind == AAAA)])]

    def say_rebind(self, question, kind):
        """Good at first, this machine's loopback ever after."""
        if kind != A:
            return [answer(question)]
        return [answer(question, [address(self.here if self.counts["rebind"] <= 2 else "127.0.0.1")])]

    def say_inward(self, question, kind):
        """An alias of something inside."""
        inside = wire_name("db.internal")
        chain = [record(CNAME, inside), address("10.213.77.5", owner=inside)]
        return [answer(question, chain if kind == A else chain[:1])]

    def say_astray(self, question, kind):
        """The address belongs to a name that the chain never mentions."""
        other = wire_name("good.test")
        return [answer(question, [record(CNAME, wire_name("x.hostile.test")), address(self.here, owner=other)])]

    def say_forged(self, question, kind):
        """Others are faster: with another number, for another name, not an answer, cut short, a pointer to itself."""
        number = struct.unpack(">H", question[:2])[0]
        lie = [address(self.evil)]
        elsewhere = wire_name("evil.test") + struct.pack(">HH", kind, 1)
        return [answer(question, lie, number=number ^ 0x0101), answer(question, lie, body=elsewhere),
                question, b"", question[:2], answer(question, lie)[:-2],
                answer(question, [b"\xc0\xff" + address(self.evil)[2:]]),
                answer(question, [address(self.here)] if kind == A else [])]

    def say_cut(self, question, kind):
        """Says that it did not fit: over TCP there is more."""
        return [answer(question, flags=0x0200)]

    def say_silent(self, question, kind):
        return []


class Resolver:
    """Serves on a UDP and a TCP socket until closed; `behind` is where honest questions go."""

    def __init__(self, udp, tcp, behind, liar, dial):
        self.udp, self.tcp, self.behind, self.liar, self.dial = udp, tcp, behind, liar, dial
        self.asked = []
        for run in (self.serve_udp, self.serve_tcp):
            threading.Thread(target=run, daemon=True).start()

    def serve_udp(self):
        with contextlib.suppress(OSError):
            while True:
                question, who = self.udp.recvfrom(4096)
                if len(question) < 17:
                    return  # closed, or no question
                threading.Thread(target=self.one, args=(question, who), daemon=True).start()

    def one(self, question, who):
        with contextlib.suppress(OSError):
            for reply in self.replies(question):
                self.udp.sendto(reply, who)

    def replies(self, question):
        name = read_question(question)[0]
        self.asked.append(name)
        if name.endswith("hostile.test"):
            return self.liar.replies(question)
        with self.dial(socket.SOCK_DGRAM) as s:
            s.settimeout(10)
            s.connect(self.behind)
            s.send(question)
            return [s.recv(4096)]

    def serve_tcp(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.tcp.accept()
                threading.Thread(target=self.stream, args=(connection,), daemon=True).start()

    def stream(self, connection):
        """Whole answers: what was cut over UDP has its addresses here."""
        with connection, contextlib.suppress(OSError, struct.error):
            size = struct.unpack(">H", connection.recv(2, socket.MSG_WAITALL))[0]
            question = connection.recv(size, socket.MSG_WAITALL)
            name, kind, _ = read_question(question)
            self.asked.append(name)
            reply = answer(question, [address(self.liar.here)] if kind == A else [])
            connection.sendall(struct.pack(">H", len(reply)) + reply)

    def close(self):
        for s in (self.udp, self.tcp):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
