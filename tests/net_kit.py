"""A piece of internet on this machine: real servers in a network namespace of their own, one cable away.

The addresses are documentation's, routed over a veth pair to the namespace `wtnet-N`; several runs at once
have several. What passes the cable is written down, so that a test can say what never left. Everything
here ends with the process that made it.
"""
import contextlib
import ctypes
import ipaddress
import os
import pathlib
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

import net_dns
import net_files
from harness import DEADLINE, until

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
ETH_P_ALL = 3
DNSMASQ_PORT, WS_PORT = 5300, 8099
ZONES = ["good.test", "other.test", "evil.test"]
NAMES = [*ZONES, "*.good.test", "*.evil.test", "*.hostile.test", "hostile.test"]
libc = ctypes.CDLL(None, use_errno=True)

NGINX = """
daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/nginx.error warn;
events {{ worker_connections 4096; }}
http {{
    access_log {dir}/nginx.access; types {{ application/json json; text/html html; }} default_type application/octet-stream;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
    client_max_body_size 0; server_tokens off; keepalive_requests 100000;
    map $http_upgrade $upgraded {{ default upgrade; "" close; }}
    map $uri $realm {{ default off; ~^/private git; }}
    {servers}
}}
"""
SERVER = """
    server {{
        listen {web}:80; listen {web}:443 ssl http2; listen [{web6}]:80; listen [{web6}]:443 ssl http2; listen {evil}:80; listen {evil}:443 ssl http2;
        listen {odd}:8081;
        server_name {names};
        location = / {{ return 200 "page of $host by $server_protocol\\n"; }}
        location = /echo {{ return 200 "$request_method $http_user_agent\\n"; }}
        location = /away {{ return 302 http://evil.test/stolen; }}
        {more}
    }}
"""
PLACES = {
    "good.test hostile.test *.hostile.test": "root {dir}; location /up/ {{ dav_methods PUT; }}",
    "other.test evil.test *.evil.test": "",
    "apt.good.test": "location /apt/ {{ alias {dir}/apt/; }}",
    "npm.good.test": "root {dir}/npm;",
    "pypi.good.test": "root {dir}/pypi; index index.html;",
    "git.good.test": """location ~ ^/(repo|private)\\.git/ {{
            auth_basic $realm; auth_basic_user_file {dir}/passwords;
            include /etc/nginx/fastcgi_params; fastcgi_pass unix:{dir}/fcgi; fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
            fastcgi_param GIT_PROJECT_ROOT {dir}/git; fastcgi_param GIT_HTTP_EXPORT_ALL 1; fastcgi_param PATH_INFO $uri; fastcgi_param REMOTE_USER anybody;
        }}""",
    "ws.good.test": """location /chat {{
            proxy_pass http://{web}:8099; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $upgraded;
        }}""",
}


def ip(*args, check=True):
    done = subprocess.run(["ip", *map(str, args)], capture_output=True, text=True, timeout=60)
    assert not check or done.returncode == 0, (args, done.stderr)
    return done


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Sniffer:
    """Destinations of the packets that pass an interface (None: every one), as (protocol, address, port)."""

    def __init__(self, sock, wanted):
        self.sock, self.wanted = sock, wanted
        self.seen = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                frame = self.sock.recv(65536)
                found = self.read(frame)
                if found and self.wanted(*found):
                    self.seen.append(found)

    @staticmethod
    def read(frame):
        kind, p = frame[12:14], frame[14:]
        if kind == b"\x08\x00" and len(p) >= 24:
            at = 4 * (p[0] & 15)
            return p[9], socket.inet_ntoa(p[16:20]), struct.unpack(">H", p[at + 2:at + 4])[0]
        if kind == b"\x86\xdd" and len(p) >= 44 and p[24] != 0xff:  # multicast: neighbours are being found
            if p[6] == 58:
                return None
            return p[6], socket.inet_ntop(socket.AF_INET6, p[24:40]), struct.unpack(">H", p[42:44])[0]
        return None

    def close(self):
        self.sock.close()


class World:
    def __init__(self):
        self.children, self.closers = [], []
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="wtnet-", dir="/tmp"))
        self.dir.chmod(0o755)
        try:
            self.claim()
            self.cable()
            self.serve()
        except BaseException:
            self.close()
            raise

    # -- the place

    def claim(self):
        """A number that no other living run has."""
        for n in range(15):
            self.n, self.ns = n, f"wtnet-{n}"
            if ip("netns", "add", self.ns, check=False).returncode == 0:
                return
            alias = pathlib.Path(f"/sys/class/net/wtnet{n}/ifalias")
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(alias.read_text()), 0)
                continue
            with contextlib.suppress(OSError):  # one that is being made has no cable yet
                if not alias.exists() or os.stat(f"/run/netns/{self.ns}").st_mtime > self.dir.stat().st_mtime - 60:
                    continue
            ip("link", "del", f"wtnet{n}", check=False)
            ip("netns", "del", self.ns, check=False)
            if ip("netns", "add", self.ns, check=False).returncode == 0:
                return
        raise AssertionError("no free place for test servers")

    def cable(self):
        block = ipaddress.ip_network(f"203.0.113.{16 * self.n}/28")
        at = [str(a) for a in block]
        self.web, self.evil, self.dns, self.shell, self.odd = at[1:6]
        self.opened = [f"{at[0]}/29", f"2001:db8:{self.n:x}::/64"]
        self.shut, self.host = at[9], at[14]  # a server that nobody opened, and this machine's end
        self.web6, self.host6 = f"2001:db8:{self.n:x}::1", f"2001:db8:{self.n:x}::ffff:e"
        name = f"wtnet{self.n}"
        ip("link", "add", name, "type", "veth", "peer", "name", "wire", "netns", self.ns)
        ip("link", "set", name, "alias", os.getpid())
        ip("addr", "add", f"{self.host}/28", "dev", name)
        ip("addr", "add", f"{self.host6}/64", "dev", name, "nodad")
        ip("link", "set", name, "up")
        for dev in ("lo", "wire"):
            ip("-n", self.ns, "link", "set", dev, "up")
        for address in at[1:14]:
            ip("-n", self.ns, "addr", "add", f"{address}/28", "dev", "wire")
        ip("-n", self.ns, "addr", "add", f"{self.web6}/64", "dev", "wire", "nodad")

    def inside(self, work):
        """The result of `work`, done by a thread that is in the namespace; its sockets stay there."""
        got = []

        def go():
            try:
                with open(f"/run/netns/{self.ns}", "rb") as f:
                    if libc.setns(f.fileno(), CLONE_NEWNET) < 0:
                        raise OSError(ctypes.get_errno(), "setns")
                got.append((True, work()))
            except BaseException as e:  # handed to who asked
                got.append((False, e))
        thread = threading.Thread(target=go)
        thread.start()
        thread.join()
        good, value = got[0]
        if not good:
            raise value
        return value

    def listen(self, address, port, kind=socket.SOCK_STREAM):
        def make():
            s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((address, port))
            if kind == socket.SOCK_STREAM:
                s.listen(1024)
            return s
        s = self.inside(make)
        self.closers.append(s.close)
        return s

    def serve_each(self, address, port, handle):
        """A thread for each connection; `handle` gets the socket."""
        listener = self.listen(address, port)

        def one(s):
            with s, contextlib.suppress(OSError, ssl.SSLError):
                handle(s)

        def run():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
        threading.Thread(target=run, daemon=True).start()
        return listener

    def sniff(self, wanted=lambda protocol, address, port: True, ns=True):
        def make():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
            if ns:
                s.bind(("wire", 0))
            return s
        sniffer = Sniffer(self.inside(make) if ns else make(), wanted)
        self.closers.append(sniffer.close)
        return sniffer

    # -- the servers

    def spawn(self, *argv):
        log = open(self.dir / "servers.log", "ab")
        self.children.append(subprocess.Popen(
            ["ip", "netns", "exec", self.ns, *map(str, argv)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=die_with_parent, start_new_session=True))
        log.close()

    def serve(self):
        net_files.certificates(self.dir, NAMES)
        for make, name, args in ((net_files.debian, "apt", ()), (net_files.npm, "npm", ("https://npm.good.test",)),
                                 (net_files.pypi, "pypi", ()), (net_files.git, "git", ())):
            make(self.dir / name, *args)
        for name in ("files", "up"):
            (self.dir / name).mkdir()
        (self.dir / "files/big").write_bytes(os.urandom(1 << 20) * 8)
        self.start_dns()
        self.start_web()
        self.start_shell()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.dir / "cert.pem", self.dir / "key.pem")
        self.serve_each(self.web, WS_PORT, chat)

    def start_dns(self):
        records = [f"--host-record={n},{self.web},{self.web6}" for n in
                   ("good.test", "other.test", *(f"{s}.good.test" for s in ("apt", "npm", "pypi", "git", "ws")))]
        records += [f"--host-record=evil.test,{self.evil}", f"--host-record=six.good.test,{self.web6}",
                    f"--host-record=ssh.good.test,{self.shell}", f"--host-record=odd.good.test,{self.odd}",
                    "--cname=www.good.test,good.test", "--txt-record=good.test,some text"]
        self.spawn("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts", "--no-resolv", "--cache-size=0",
                   "--user=root", f"--pid-file={self.dir}/dnsmasq.pid", f"--listen-address={self.dns}", "--bind-interfaces",
                   f"--port={DNSMASQ_PORT}", "--local=/test/", *records)
        self.liar = net_dns.Liar(self.web, self.evil, self.host)
        self.resolver = net_dns.Resolver(
            self.listen(self.dns, 53, socket.SOCK_DGRAM), self.listen(self.dns, 53), (self.dns, DNSMASQ_PORT), self.liar,
            lambda kind: self.inside(lambda: socket.socket(socket.AF_INET, kind)))
        self.closers.append(self.resolver.close)
        until(lambda: self.answers(self.dns, DNSMASQ_PORT), "the resolver behind it", DEADLINE * 2)

    def start_web(self):
        where = {"dir": self.dir, "web": self.web, "web6": self.web6, "evil": self.evil, "odd": self.odd}
        servers = "".join(SERVER.format(names=names, more=more.format(**where), **where) for names, more in PLACES.items())
        (self.dir / "nginx.conf").write_text(NGINX.format(servers=servers, **where))
        self.spawn("fcgiwrap", "-c", "2", "-s", f"unix:{self.dir}/fcgi")
        self.spawn("nginx", "-e", self.dir / "nginx.error", "-c", self.dir / "nginx.conf")
        until(lambda: self.answers(self.web, 443), "nginx", DEADLINE * 2)

    def start_shell(self):
        """An SSH server for root, who has another home there."""
        home, key = self.dir / "home", self.dir / "client"
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        home.chmod(0o700)
        net_files.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        net_files.run("dropbearkey", "-t", "ed25519", "-f", self.dir / "hostkey")
        (home / ".ssh/authorized_keys").write_text((self.dir / "client.pub").read_text())
        (home / ".ssh/authorized_keys").chmod(0o600)
        self.spawn("unshare", "-m", "sh", "-c", f"mount --bind {home} /root && exec dropbear -F -E -m -s -r {self.dir}/hostkey "
                   f"-p {self.shell}:22 -P {self.dir}/dropbear.pid")
        until(lambda: self.answers(self.shell, 22), "the SSH server", DEADLINE * 2)

    @staticmethod
    def answers(address, port):
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=DEADLINE):
            return True

    def served(self, needle):
        """Lines of the web server's log that have this in them."""
        return [line for line in (self.dir / "nginx.access").read_text(errors="replace").splitlines() if needle in line]

    def close(self):
        for close in reversed(self.closers):
            with contextlib.suppress(OSError):
                close()
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        ip("link", "del", f"wtnet{self.n}", check=False)
        ip("netns", "del", self.ns, check=False)
        subprocess.run(["rm", "-rf", str(self.dir)], check=False)


def chat(s):
    """WebSocket: says back what it is told, until the end."""
    import base64
    import hashlib
    head = b""
    while b"\r\n\r\n" not in head:
        piece = s.recv(4096)
        if not piece:
            return
        head += piece
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if ": " in line)
    key = {k.lower(): v for k, v in fields.items()}["sec-websocket-key"]
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    s.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    while True:
        start = s.recv(2, socket.MSG_WAITALL)
        if len(start) < 2 or start[0] & 15 == 8:
            return
        mask = s.recv(4, socket.MSG_WAITALL)
        said = s.recv(start[1] & 127, socket.MSG_WAITALL)
        s.sendall(bytes([0x81, len(said)]) + bytes(b ^ mask[i % 4] for i, b in enumerate(said)))
