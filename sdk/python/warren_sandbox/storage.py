"""What outlives sandboxes: volumes, which hold files, and secrets, whose values are never shown."""
from __future__ import annotations

from typing import Any, List, Mapping, Optional

from ._http import Transport, given, quote
from ._noun import Noun, once
from .files import Files
from .models import Secret, VolumeCheckpoint, VolumeInfo


class Volume:
    """One volume. ``files`` are its own, without a sandbox: the volume is their root."""

    def __init__(self, transport: Transport, info: VolumeInfo):
        self._transport, self.info = transport, info
        self._path = f"/v1/volumes/{quote(info.id)}"
        self.files = Files(transport, self._path)

    def __repr__(self) -> str:
        return f"<Volume {self.name}>"

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def name(self) -> str:
        return self.info.name

    def refresh(self) -> VolumeInfo:
        """Ask again how it is."""
        self.info = VolumeInfo.of(self._transport.call("GET", self._path))
        return self.info

    def resize(self, size_mb: int) -> VolumeInfo:
        """What it may hold at most."""
        self.info = VolumeInfo.of(self._transport.call("PATCH", self._path, {"size_mb": size_mb}))
        return self.info

    def checkpoint(self, name: Optional[str] = None, *, comment: Optional[str] = None
                   ) -> VolumeCheckpoint:
        """Keep its files as they are now, also while sandboxes write to it."""
        return VolumeCheckpoint.of(self._transport.call(
            "POST", f"{self._path}/checkpoints", given(name=name, comment=comment), headers=once()))

    def checkpoints(self) -> List[VolumeCheckpoint]:
        """Its checkpoints, the oldest first."""
        return [VolumeCheckpoint.of(c) for c in
                Noun(self._transport)._pages(f"{self._path}/checkpoints", "checkpoints")]

    def restore(self, checkpoint: str) -> VolumeInfo:
        """Back to those files; refused (``Conflict``) while a sandbox that has it is not stopped."""
        self.info = VolumeInfo.of(self._transport.call(
            "POST", f"{self._path}/restore", {"checkpoint": checkpoint}))
        return self.info

    def fork(self, checkpoint: str, name: Optional[str] = None, *, size_mb: Optional[int] = None
             ) -> Volume:
        """A new volume with the files of a checkpoint."""
        return Volume(self._transport, VolumeInfo.of(self._transport.call(
            "POST", f"{self._path}/checkpoints/{quote(checkpoint)}/volumes",
            given(name=name, size_mb=size_mb), headers=once())))

    def forget(self, checkpoint: str) -> None:
        """Remove a checkpoint; the others stay."""
        self._transport.call("DELETE", f"{self._path}/checkpoints/{quote(checkpoint)}")

    def delete(self) -> None:
        """Remove it, files, checkpoints and all; refused (``Conflict``) while a sandbox has it."""
        self._transport.call("DELETE", self._path)


class Volumes(Noun):
    """``client.volumes``: files that outlive sandboxes."""

    def create(self, name: Optional[str] = None, *, size_mb: Optional[int] = None,
               bucket: Optional[Mapping[str, Any]] = None) -> Volume:
        """``bucket``: show a bucket of an object store: endpoint, bucket, access_key, secret (the
        name of one), and prefix, region, path_style, read_only where they matter."""
        return Volume(self._transport, VolumeInfo.of(self._transport.call(
            "POST", "/v1/volumes",
            given(name=name, size_mb=size_mb, kind="bucket" if bucket else None,
                  bucket=dict(bucket) if bucket else None), headers=once())))

    def list(self) -> List[Volume]:
        return [Volume(self._transport, VolumeInfo.of(v))
                for v in self._pages("/v1/volumes", "volumes")]

    def get(self, who: str) -> Volume:
        """One, by its id or name."""
        return Volume(self._transport, VolumeInfo.of(
            self._transport.call("GET", f"/v1/volumes/{quote(who)}")))

    def delete(self, who: str) -> None:
        self._transport.call("DELETE", f"/v1/volumes/{quote(who)}")


class Secrets(Noun):
    """``client.secrets``: values go in and are never shown again; bindings use them."""

    def create(self, name: str, value: str, *, metadata: Optional[Mapping[str, str]] = None
               ) -> Secret:
        return Secret.of(self._transport.call(
            "POST", "/v1/secrets",
            given(name=name, value=value, metadata=dict(metadata) if metadata else None),
            headers=once()))

    def list(self) -> List[Secret]:
        return [Secret.of(s) for s in self._pages("/v1/secrets", "secrets")]

    def get(self, who: str) -> Secret:
        """What is known of one, by its id or name; not its value."""
        return Secret.of(self._transport.call("GET", f"/v1/secrets/{quote(who)}"))

    def update(self, who: str, **changes: Any) -> Secret:
        """Change ``value`` (a new version) or ``metadata``."""
        return Secret.of(self._transport.call("PATCH", f"/v1/secrets/{quote(who)}", changes))

    def delete(self, who: str) -> None:
        self._transport.call("DELETE", f"/v1/secrets/{quote(who)}")
