"""A small world for E2B's clients to reach: two addresses of this machine's own, on which the tests themselves serve."""
import contextlib
import subprocess

import harness
from harness import free_port

NAMES = ["good.test", "*.good.test", "other.test"]


def certify(place):
    """A CA, and a certificate of its for the names and addresses."""
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=place)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem", "-addext", "keyUsage=critical,keyCertSign,digitalSignature")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=good.test",
            "-keyout", "key.pem", "-out", "cert.csr")
    (place / "names").write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in NAMES))
    openssl("x509", "-req", "-in", "cert.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "cert.pem")


@contextlib.contextmanager
def world(place):
    """A daemon whose sandboxes may reach the two addresses, and the variables that tell the tests of them."""
    place.mkdir()
    certify(place)
    here, there = harness.own_address(6), harness.own_address(7)  # two that are a range, too
    port = free_port()
    with harness.own_addresses(here, there), harness.running(
            "--resolvers", f"{here}:{port}", "--egress-open", f"{here}/32,{there}/32", "--egress-ca", place / "ca.pem",
            domain="warren.test") as daemon:
        yield daemon, {"NET_HERE": here, "NET_THERE": there, "NET_DNS_PORT": str(port), "NET_PLACE": str(place)}
