"""Checkpoints: a sandbox's files at one moment, to go back to and to go on from in several ways."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._http import Response, given, quote
from ._noun import Noun, once
from .errors import ProtocolError
from .files import Data, body_of
from .models import Checkpoint, Comparison, SandboxInfo
from .sandbox import Sandbox


class Checkpoints(Noun):
    """``client.checkpoints``. One is told by its id, a name that only one has, or ``SANDBOX:NAME``;
    ``sandbox.checkpoint()`` makes one."""

    def list(self) -> List[Checkpoint]:
        """All of the team's, the oldest first."""
        return [Checkpoint.of(c) for c in self._pages("/v1/checkpoints", "checkpoints")]

    def get(self, who: str) -> Checkpoint:
        return Checkpoint.of(self._transport.call("GET", f"/v1/checkpoints/{quote(who)}"))

    def delete(self, who: str) -> None:
        """Remove one, wherever in the tree it is; the others stay."""
        self._transport.call("DELETE", f"/v1/checkpoints/{quote(who)}")

    def start(self, who: str, name: Optional[str] = None, *, memory: Optional[bool] = None
              ) -> Sandbox:
        """A new sandbox with its files."""
        return Sandbox(self._transport, SandboxInfo.of(self._transport.call(
            "POST", f"/v1/checkpoints/{quote(who)}/sandboxes", given(name=name, memory=memory),
            headers=once(), timeout=None)))

    def diff(self, a: str, b: str, *paths: str, text: bool = False, limit: Optional[int] = None
             ) -> Comparison:
        """Which files differ on the way from ``a`` to ``b``; either may be a sandbox, which means its
        files as they are now. ``text``: how texts changed, too."""
        return Comparison.of(self._transport.call(
            "GET", f"/v1/checkpoints/{quote(a)}/diff",
            query={"to": b, "path": list(paths) or None, "text": text or None, "limit": limit}))

    def archive(self, who: str, *, keep_local: bool = True) -> Checkpoint:
        """Its files go to the daemon's object storage; ``keep_local=False``: and are here no longer. Using it fetches
        them again."""
        return self._moved(who, "archive", {"keep_local": keep_local})

    def fetch(self, who: str) -> Checkpoint:
        """Its files are here again; the archive stays."""
        return self._moved(who, "fetch", {})

    def unarchive(self, who: str) -> None:
        """Remove its archive; its files must be here."""
        self._transport.call("DELETE", f"/v1/checkpoints/{quote(who)}/archive", timeout=None)

    def _moved(self, who: str, how: str, body: Dict[str, Any]) -> Checkpoint:
        with self._transport.lines("POST", f"/v1/checkpoints/{quote(who)}/{how}", body) as lines:
            for line in lines:
                if line.get("type") == "checkpoint":
                    return Checkpoint.of(line["checkpoint"])
        raise ProtocolError("the stream ended without a checkpoint")

    def export(self, who: str, *, image: bool = True) -> Response:
        """All of it as one file; read it in chunks. ``image=False`` leaves out the layers of its image,
        for a place that has them."""
        return self._transport.open("GET", f"/v1/checkpoints/{quote(who)}/export",
                                    query={"image": None if image else False},
                                    headers={"Accept": "*/*"}, timeout=None)

    def import_file(self, data: Data, name: Optional[str] = None) -> Checkpoint:
        """A checkpoint from such a file, of this Warren or another."""
        body, length = body_of(data)
        return Checkpoint.of(self._transport.call(
            "POST", "/v1/checkpoints/import", query={"name": name}, body=body,
            headers={"Content-Type": "application/x-tar", **length}, timeout=None))
