"""Images made by hand, byte by byte, so that a test can put into one what no tool would."""
import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def entry(name, data=b"", **more):
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = 0o644, 1_700_000_000
    if isinstance(data, str):
        data = data.encode()
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def directory(name, **more):
    return entry(name, type=tarfile.DIRTYPE, **{"mode": 0o755, **more})


def symlink(name, target, **more):
    return entry(name, type=tarfile.SYMTYPE, linkname=target, **more)


def hardlink(name, target):
    return entry(name, type=tarfile.LNKTYPE, linkname=target)


def tar(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def gz(data):
    return gzip.compress(data, 6, mtime=0)


PACKING = {"": (lambda d: d, ""), "gzip": (gz, "+gzip"), "zstd": (zstd, "+zstd")}


class Image:
    """Layers (tars) and a configuration; what it is packed as is up to the caller."""

    def __init__(self, *layers, packing="gzip", config=None, arch=MACHINE, **more):
        pack, self.suffix = PACKING[packing]
        self.tars, self.blobs = list(layers), [pack(layer) for layer in layers]
        self.config = json.dumps({
            "architecture": arch, "os": "linux", "created": "2024-05-06T07:08:09Z",
            "config": config or {}, "rootfs": {"type": "layers", "diff_ids": [sha(t) for t in layers]},
            "history": [{"created_by": f"step {i}"} for i in range(len(layers))], **more}).encode()

    def descriptor(self, data, kind):
        return {"mediaType": OCI + kind, "digest": sha(data), "size": len(data)}

    @property
    def manifest(self):
        return json.dumps({
            "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
            "config": self.descriptor(self.config, "config.v1+json"),
            "layers": [self.descriptor(b, "layer.v1.tar" + self.suffix) for b in self.blobs]}).encode()

    def members(self):
        return {f"blobs/sha256/{sha(d)[7:]}": d for d in (*self.blobs, self.config, self.manifest)}

    def docker(self, tag="made:latest"):
        """As `docker save` writes it: a directory a layer, manifest.json last."""
        files = {f"{sha(t)[7:]}/layer.tar": t for t in self.tars}
        files[f"{sha(self.config)[7:]}.json"] = self.config
        files["manifest.json"] = json.dumps([{
            "Config": f"{sha(self.config)[7:]}.json", "RepoTags": [tag],
            "Layers": [f"{sha(t)[7:]}/layer.tar" for t in self.tars]}]).encode()
        return tar(*(entry(n, d) for n, d in files.items()))


def layout(*images, nested=False, members=None, drop=(), refs=()):
    """An OCI layout of one or more images (one a platform)."""
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    entries = []
    for i, image in enumerate(images):
        files.update(image.members())
        arch = json.loads(image.config)["architecture"]
        entries.append({**image.descriptor(image.manifest, "manifest.v1+json"),
                        "platform": {"os": "linux", "architecture": arch}})
        if i < len(refs):
            entries[-1]["annotations"] = {"org.opencontainers.image.ref.name": refs[i]}
    index = json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
    if nested:
        files[f"blobs/sha256/{sha(index)[7:]}"] = index
        index = json.dumps({"schemaVersion": 2, "manifests": [
            {"mediaType": OCI + "index.v1+json", "digest": sha(index), "size": len(index)}]}).encode()
    files["index.json"] = index
    files.update(members or {})
    return tar(*(entry(n, d) for n, d in files.items() if n not in drop))


def busybox():
    """A first layer that a sandbox can run from."""
    with open("/bin/busybox", "rb") as f:
        program = f.read()
    applets = ("sh", "cat", "ls", "echo", "stat", "id", "pwd", "env", "rm", "mkdir", "ln", "find", "mv", "sort",
               "touch", "du", "readlink", "sync", "dd", "cp", "test", "true", "sleep", "mkfifo", "chmod", "chown")
    return tar(directory("bin"), directory("etc"), directory("root", mode=0o700), directory("tmp", mode=0o1777),
               entry("bin/busybox", program, mode=0o755), *(symlink(f"bin/{a}", "busybox") for a in applets),
               entry("etc/passwd", "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"),
               entry("etc/group", "root:x:0:\nuser:x:1000:\n"), directory("home"),
               directory("home/user", uid=1000, gid=1000))


def tree_of(daemon, name):
    """An image's files, as root on the host sees them."""
    pool = f"/proc/{daemon.keepers()[0]}/root{daemon.data}/pool/images"
    import sqlite3
    db = sqlite3.connect(f"file:{daemon.data}/state/warren.db?mode=ro", uri=True)
    try:
        (tree,) = db.execute("SELECT l.tree FROM image_names n JOIN image_contents c USING (digest)"
                             " JOIN image_layers l USING (chain) WHERE n.name = ?", (name,)).fetchone()
    finally:
        db.close()
    return os.path.join(pool, tree)
