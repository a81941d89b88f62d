"""What the servers of net_kit hand out: a Debian repository, npm's and PyPI's registries, a git repository."""
import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile

# Packed again as they are installed here: real packages, and what the image lacks of their dependencies.
DEBIAN = ["wget", "netcat-openbsd", "openssh-client", "libedit2", "libfido2-1", "libcbor0.8"]


def run(*argv, **more):
    done = subprocess.run([str(a) for a in argv], capture_output=True, timeout=300, **more)
    assert done.returncode == 0, (argv, done.stderr[-2000:])
    return done.stdout


def certificates(where, names):
    """A CA and one certificate for all these names."""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=Test CA", "-keyout", where / "ca.key", "-out", where / "ca.pem")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=server",
        "-keyout", where / "key.pem", "-out", where / "request.pem")
    (where / "extensions").write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in names))
    run("openssl", "x509", "-req", "-in", where / "request.pem", "-CA", where / "ca.pem", "-CAkey", where / "ca.key",
        "-CAcreateserial", "-days", "2", "-extfile", where / "extensions", "-out", where / "cert.pem")


def debian(where):
    """A repository at `where`, signed by nobody."""
    where.mkdir()
    run("dpkg-repack", "--deb-option=-Zgzip", "--deb-option=-z1", *DEBIAN, cwd=where)
    (where / "Packages").write_bytes(run("apt-ftparchive", "packages", ".", cwd=where))
    (where / "Release").write_bytes(run("apt-ftparchive", "release", ".", cwd=where))


def npm(where, url):
    """A registry of one package, `warren-probe`, which depends on `warren-part`."""
    where.mkdir()
    for name, needs in (("warren-part", {}), ("warren-probe", {"warren-part": "^1.0.0"})):
        about = {"name": name, "version": "1.0.0", "main": "index.js", "dependencies": needs}
        body = "module.exports = 'part'" if not needs else "console.log('probe has a ' + require('warren-part'))"
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path, text in (("package/package.json", json.dumps(about)), ("package/index.js", body)):
                info = tarfile.TarInfo(path)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
        data = packed.getvalue()
        (where / f"{name}-1.0.0.tgz").write_bytes(data)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        about["dist"] = {"tarball": f"{url}/{name}-1.0.0.tgz", "integrity": integrity}
        (where / name).write_text(json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"},
                                              "versions": {"1.0.0": about}}))


def pypi(where):
    """An index of one package, `warren-probe`."""
    simple = where / "simple" / "warren-probe"
    simple.mkdir(parents=True)
    wheel = simple / "warren_probe-1.0-py3-none-any.whl"
    info = "warren_probe-1.0.dist-info"
    files = {"warren_probe.py": "word = 'installed'\n", f"{info}/METADATA": "Metadata-Version: 2.1\nName: warren-probe\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    listing = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as z:
        for name, text in {**files, f"{info}/RECORD": listing}.items():
            z.writestr(name, text)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (simple / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')


def git(where):
    """A bare repository with one commit, to which anybody may push."""
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@good.test", "GIT_COMMITTER_NAME": "a",
                "GIT_COMMITTER_EMAIL": "a@good.test", "PATH": os.environ["PATH"], "HOME": str(where)}
    where.mkdir()
    run("git", "init", "-q", "--bare", "-b", "main", where / "repo.git", env=identity)
    run("git", "-C", where / "repo.git", "config", "http.receivepack", "true", env=identity)
    run("git", "init", "-q", "-b", "main", where / "work", env=identity)
    (where / "work/README").write_text("hello from git\n")
    run("git", "-C", where / "work", "add", "README", env=identity)
    run("git", "-C", where / "work", "commit", "-q", "-m", "first", env=identity)
    run("git", "-C", where / "work", "push", "-q", where / "repo.git", "main", env=identity)
    (where / "private.git").symlink_to("repo.git")  # the same, for who knows a password
