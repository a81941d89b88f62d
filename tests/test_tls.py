"""TLS in three ways: the local authority, the operator's files by name, ACME."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess

import pytest

import harness
from harness import until


def options(port, *more, domain="localhost"):
    return ["--tls-listen", f"127.0.0.1:{port}", "--preview-domain", domain, *more]


@pytest.fixture(scope="module")
def secure(tiny_tar):
    """A daemon with an authority of its own, for localhost; its TLS port is tls_port."""
    port = harness.free_port()
    with harness.running(*options(port), images={"tiny": tiny_tar}) as d:
        d.tls_port = port
        yield d


def ca_file(d, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_bytes(d.api.with_key(None).call("GET", "/v1/ca").body)
    return path


def shown(d, name, cafile=None):
    """The certificate that a client of that name is shown; checked against the file, if there is one."""
    context = ssl.create_default_context(cafile=cafile) if cafile else ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", d.tls_port), timeout=harness.DEADLINE) as s:
        with context.wrap_socket(s, server_hostname=name) as t:
            return t.getpeercert() if cafile else t.getpeercert(True)


def ask(d, name, cafile, path="/v1/health"):
    context = ssl.create_default_context(cafile=cafile)
    with socket.create_connection(("127.0.0.1", d.tls_port), timeout=harness.DEADLINE) as s:
        with context.wrap_socket(s, server_hostname=name) as t:
            t.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            got = b""
            while piece := t.recv(65536):
                got += piece
            return got


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def certificate(dir_, name, *names, days=2):
    """A certificate and its key in one file."""
    key, cert = dir_ / f"{name}.k", dir_ / f"{name}.c"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-days", str(days), "-subj", "/CN=x", "-keyout", key, "-out", cert,
                    "-addext", "subjectAltName=" + ",".join(f"DNS:{n}" for n in names or [name])],
                   check=True, capture_output=True)
    text = cert.read_text() + key.read_text()
    key.unlink()
    cert.unlink()
    return text


def serve(d, sandbox, port=80):
    d.api.start(sandbox, f"while true; do printf 'HTTP/1.0 200 ok\\r\\n\\r\\ninside' | nc -l -p {port}; done")


# ---- the local authority ----

def test_whoever_trusts_the_authority_reaches_everything(secure, tmp_path):
    ca = ca_file(secure, tmp_path)
    for name in ("localhost", "127.0.0.1"):
        assert b"200 OK" in ask(secure, name, ca), name
    box = secure.api.create(image="tiny")["id"]
    serve(secure, box)
    until(lambda: b"inside" in ask(secure, f"80-{box}.localhost", ca, "/"))
    # curl takes it too, by name.
    r = subprocess.run(["curl", "-sS", "--cacert", ca, "--resolve",
                        f"80-{box}.localhost:{secure.tls_port}:127.0.0.1",
                        f"https://80-{box}.localhost:{secure.tls_port}/"], capture_output=True,
                       text=True, timeout=60)
    assert r.stdout == "inside", r
    secure.api.delete(box)


def test_the_authority_vouches_for_nothing_else(secure, tmp_path):
    ca = ca_file(secure, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(secure, "example.com", ca)
    state = secure.data / "state/ca"
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "ca.key").stat().st_mode & 0o777 == 0o600
    # With its key a certificate for elsewhere can be signed, and nobody takes it.
    key, csr, cert = tmp_path / "k", tmp_path / "csr", tmp_path / "crt"
    ext = tmp_path / "ext"
    ext.write_text("subjectAltName=DNS:bank.example.com\n")
    subprocess.run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", csr,
                    "-subj", "/CN=x"], check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", csr, "-CA", state / "ca.pem", "-CAkey",
                    state / "ca.key", "-CAcreateserial", "-extfile", ext, "-out", cert],
                   check=True, capture_output=True)
    r = subprocess.run(["openssl", "verify", "-CAfile", ca, cert], capture_output=True, text=True)
    assert r.returncode != 0 and "permitted subtree violation" in r.stdout + r.stderr
    (state / "ca.srl").unlink(missing_ok=True)


def test_it_is_the_same_after_a_restart_and_after_the_brokers_death(secure, tmp_path):
    ca = ca_file(secure, tmp_path)
    harness.kill_all(secure.pids("warren-broker"), lambda pids: None)

    def answers():
        with contextlib.suppress(OSError):
            return b"200 OK" in ask(secure, "localhost", ca)
    until(answers)
    secure.restart()
    until(answers)
    assert ca_file(secure, tmp_path).read_bytes() == (secure.data / "state/ca/ca.pem").read_bytes()


def test_a_daemon_without_an_authority_says_so(daemon):
    daemon.api.refused(404, "not_found", "GET", "/v1/ca")
    r = daemon.cli("ca", "show")
    assert r.returncode == 1 and "no authority" in r.stderr


def test_the_command_shows_and_trusts_it(secure, tmp_path):
    """In a mount namespace of its own: this machine's stores stay as they are."""
    assert secure.cli("ca", "show").stdout.encode() == ca_file(secure, tmp_path).read_bytes()
    if not shutil.which("update-ca-certificates"):
        pytest.skip("ca-certificates is not installed")
    home = tmp_path / "home"
    (home / ".pki/nssdb").mkdir(parents=True)
    url = f"https://localhost:{secure.tls_port}/v1/health"
    script = f"""
        set -e
        for d in /etc/ssl/certs /usr/local/share; do
            cp -a $d {tmp_path}/copy; mount --bind {tmp_path}/copy $d; mv {tmp_path}/copy {tmp_path}/c$RANDOM || true
        done
        warren() {{ {harness.BUILD}/warren "$@"; }}
        ! curl -s {url} >/dev/null
        warren ca trust
        curl -sS {url} | grep -q status
        warren ca trust
        warren ca trust --remove
        ! curl -s {url} >/dev/null
        warren ca trust --remove
    """
    r = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True,
                       env={**secure.cli_environment(), "HOME": str(home)}, timeout=180)
    assert r.returncode == 0, r
    assert r.stdout.count("system store: trusts") == 2
    assert r.stdout.count("system store: no longer trusts") == 1
    assert "system store: it was not there" in r.stdout and "browsers' store" in r.stdout


# ---- by name ----

def test_files_of_a_directory_are_shown_by_name_and_reloaded(secure, tmp_path):
    place = secure.data / "state/certs"
    owner = place.stat()

    def put(name, text):
        part = place / f".{name}"
        part.write_text(text)
        os.chown(part, owner.st_uid, owner.st_gid)
        part.rename(place / f"{name}.pem")

    def of(text):
        return ssl.PEM_cert_to_DER_cert(text[:text.index("-----END CERTIFICATE") + 26])

    first = certificate(tmp_path, "app.example.com")
    star = certificate(tmp_path, "star", "*.apps.example.org", "other.example.net")
    put("app.example.com", first)
    put("star", star)
    until(lambda: shown(secure, "app.example.com") == of(first))
    until(lambda: shown(secure, "x.apps.example.org") == of(star))
    assert shown(secure, "OTHER.example.net") == of(star)
    assert shown(secure, "app.example.org") not in (of(first), of(star))
    # A new broker has them again.
    harness.kill_all(secure.pids("warren-broker"), lambda pids: None)

    def again():
        with contextlib.suppress(OSError):
            return shown(secure, "app.example.com") == of(first)
    until(again)
    # A new file counts; one that is no certificate is told of, and is none.
    second = certificate(tmp_path, "app.example.com")
    put("app.example.com", second)
    until(lambda: shown(secure, "app.example.com") == of(second))
    put("app.example.com", "no certificate")
    until(lambda: shown(secure, "app.example.com") not in (of(first), of(second)))
    assert "no certificate with its key" in secure.log()
    (place / "app.example.com.pem").unlink()
    (place / "star.pem").unlink()
    until(lambda: shown(secure, "x.apps.example.org") != of(star))


def test_options_that_do_not_fit_are_explained(build_dir, run):
    for args, words in ((["--tls-cert", "x"], "go together"),
                        (["--tls-certs", "/tmp"], "need --tls-listen"),
                        (["--acme-directory", "https://x"], "need --tls-listen"),
                        (["--tls-listen", "127.0.0.1:0", "--acme-directory", "http://x"], "https://")):
        r = run(build_dir / "warrend", *args)
        assert r.returncode != 0 and words in r.stderr, (args, r.stderr)


# ---- ACME, with a real authority of the protocol: pebble ----

# It does things at random unless it is told not to: refuses good nonces, waits, asks for no new proof.
PEBBLE = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}


class Trusting(harness.Daemon):
    """A daemon that sees this machine's trust store with one more authority in it."""
    bundle = None

    def command(self, program, *args):
        words = super().command(program, *args)
        if program != "warrend":
            return words
        return ["unshare", "-m", "sh", "-c",
                'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"', str(self.bundle),
                *words]


@pytest.fixture(scope="module")
def acme(tmp_path_factory, tiny_tar):
    """A daemon and the authority that it asks; whatever the name, its address is 127.0.0.1."""
    for program in ("pebble", "pebble-challtestsrv", "uacme"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    place = tmp_path_factory.mktemp("acme")
    place.chmod(0o755)
    own = certificate(place, "pebble", "localhost")
    (place / "pebble.pem").write_text(own)
    bundle = place / "bundle.crt"
    bundle.write_text(pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_text() + own)
    bundle.chmod(0o644)
    port, manage, dns, control, tls = (harness.free_port() for _ in range(5))
    Trusting.bundle = bundle
    d = None
    started = []

    def start(*words):
        log = open(place / f"{words[0]}.log", "ab")
        started.append(subprocess.Popen(words, stdout=log, stderr=log, cwd=place,
                                        env={**os.environ, **PEBBLE}))
    try:
        d = Trusting(*options(tls, "--acme-directory", f"https://localhost:{port}/dir",
                              "--acme-email", "ops@example.com", domain="warren.test"))
        d.tls_port = tls
        (place / "config.json").write_text(json.dumps({"pebble": {
            "listenAddress": f"127.0.0.1:{port}", "managementListenAddress": f"127.0.0.1:{manage}",
            "certificate": "pebble.pem", "privateKey": "pebble.pem", "httpPort": d.port,
            "tlsPort": d.tls_port, "ocspResponderURL": "", "externalAccountBindingRequired": False}}))
        start("pebble-challtestsrv", "-http01", "", "-https01", "", "-tlsalpn01", "", "-dns01",
              f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{control}", "-defaultIPv6", "")
        start("pebble", "-config", "config.json", "-dnsserver", f"127.0.0.1:{dns}", "-strict")
        for p in (port, control):
            until(lambda: answers(p), f"port {p}")
        d.api.import_image("tiny", tiny_tar)
        d.control, d.acme_log = control, lambda: (place / "pebble.log").read_text()[-3000:]
        yield d
    finally:
        for p in started:
            p.kill()
            p.wait()
        if d:
            d.close()


def name_of(d, name):
    return d.api.ok("GET", f"/v1/names/{name}")["certificate"]


def test_a_name_gets_its_certificate_and_keeps_it(acme, tmp_path):
    box = acme.api.create(image="tiny")["id"]
    serve(acme, box)
    put = {"name": "shop.example.com", "sandbox": box, "port": 80}
    acme.api.ok("POST", "/v1/names", put)
    got = until(lambda: name_of(acme, "shop.example.com"), "a certificate", harness.DEADLINE * 3)
    assert got["error"] is None, (got, acme.acme_log())
    der = shown(acme, "shop.example.com")
    text = subprocess.run(["openssl", "x509", "-inform", "der", "-noout", "-issuer", "-ext",
                           "subjectAltName"], input=der, capture_output=True, check=True).stdout
    assert b"Pebble" in text and b"DNS:shop.example.com" in text
    files = acme.data / "state/acme"
    assert not list((files / "challenges").iterdir())
    for path in files.rglob("*.pem"):
        assert path.stat().st_mode & 0o077 == 0 or path.name == "cert.pem", path
    # What is still good is not asked for again; what is about to end is.
    def due(days_ago, hours):
        key, csr, cert = tmp_path / "k", tmp_path / "csr", tmp_path / "crt"
        (tmp_path / "cfg").write_text(
            "[ca]\ndefault_ca=x\n[x]\ndatabase=db\nserial=sr\nnew_certs_dir=.\ndefault_md=sha256\n"
            "policy=p\n[p]\ncommonName=supplied\n")
        (tmp_path / "db").write_text("")
        (tmp_path / "sr").write_text("01")
        subprocess.run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", csr,
                        "-subj", "/CN=shop.example.com"], check=True, capture_output=True)
        stamp = lambda s: subprocess.run(["date", "-u", "-d", s, "+%Y%m%d%H%M%SZ"],
                                         capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["openssl", "ca", "-config", "cfg", "-selfsign", "-keyfile", key, "-in", csr,
                        "-out", cert, "-batch", "-notext", "-startdate", stamp(f"{days_ago} days ago"),
                        "-enddate", stamp(f"{hours} hours")], check=True, capture_output=True,
                       cwd=tmp_path)
        return cert.read_text() + key.read_text()
    target = files / "certs/shop.example.com.pem"
    owner = target.stat()
    old = due(60, 24)
    target.write_text(old)
    os.chown(target, owner.st_uid, owner.st_gid)
    until(lambda: name_of(acme, "shop.example.com")["expires_at"] != got["expires_at"])
    acme.api.ok("POST", "/v1/names", put)  # which has it look at once
    until(lambda: target.read_text() != old, "a renewal", harness.DEADLINE * 3)
    until(lambda: shown(acme, "shop.example.com") != ssl.PEM_cert_to_DER_cert(
        old[:old.index("-----END CERTIFICATE") + 26]))
    # A name that is gone needs none.
    acme.api.ok("DELETE", "/v1/names/shop.example.com")
    acme.api.ok("POST", "/v1/names", {**put, "name": "other.example.com"})
    until(lambda: not target.exists(), "its end", harness.DEADLINE * 3)
    acme.api.ok("DELETE", "/v1/names/other.example.com")
    acme.api.delete(box)


def test_what_the_authority_does_not_grant_is_told(acme):
    import urllib.request
    urllib.request.urlopen(f"http://127.0.0.1:{acme.control}/add-a", data=json.dumps(
        {"host": "far.example.com.", "addresses": ["127.0.0.2"]}).encode()).read()
    box = acme.api.create(image="tiny")["id"]
    acme.api.ok("POST", "/v1/names", {"name": "far.example.com", "sandbox": box, "port": 80})
    got = until(lambda: name_of(acme, "far.example.com"), "a failure", harness.DEADLINE * 3)
    assert got["error"] and got["next_try_at"] and got["expires_at"] is None
    assert "no certificate, trying again later" in acme.log()
    # The name works over TLS all the same, with the default certificate.
    assert shown(acme, "far.example.com")
    acme.api.ok("DELETE", "/v1/names/far.example.com")
    acme.api.delete(box)


def test_challenges_are_answered_and_nothing_else(acme):
    place = acme.data / "state/acme/challenges"
    (place / "a-token_1").write_text("proof")
    os.chmod(place / "a-token_1", 0o644)
    stranger = acme.api.with_key(None)
    assert stranger.call("GET", "/.well-known/acme-challenge/a-token_1").body == b"proof"
    for wrong in ("a-token_2", "..%2f..%2fca%2fca.key", "a" * 200, "%00"):
        assert stranger.call("GET", f"/.well-known/acme-challenge/{wrong}").status in (400, 404)
    (place / "a-token_1").unlink()
