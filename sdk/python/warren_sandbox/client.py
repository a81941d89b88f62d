"""The client: where the daemon is, who asks, and what it has."""
from __future__ import annotations

import datetime
import os
import ssl
from typing import Any, Dict, List, Mapping, Optional, Union

from ._archive import gzipped, tar_of_directory
from ._http import Lines, Response, Transport, given, quote
from ._noun import Noun, once
from .checkpoints import Checkpoints
from .files import Data, body_of
from .models import Event, Image, Key, Name, Network, Team, Template, Usage
from .sandbox import Sandbox, Sandboxes
from .storage import Secrets, Volumes

_SOCKET = "/run/warren/warren.sock"
_BYTES = {"Content-Type": "application/octet-stream"}


class Images(Noun):
    """``client.images``."""

    def list(self, name: Optional[str] = None) -> List[Image]:
        """One's own and public ones; ``name`` is a prefix."""
        return [Image.of(i) for i in self._pages("/v1/images", "images", {"name": name})]

    def get(self, name: str) -> Image:
        return Image.of(self._transport.call("GET", f"/v1/images/{quote(name)}"))

    def history(self, name: str) -> List[Dict[str, Any]]:
        """What its layers were made by, newest first."""
        answer = self._transport.call("GET", f"/v1/images/{quote(name)}/history")
        return list(answer["history"])

    def put(self, name: str, data: Data, *, public: bool = False) -> Image:
        """Import a root filesystem tar, a ``docker save`` archive or an OCI layout."""
        body, length = body_of(data)
        return Image.of(self._transport.call(
            "PUT", f"/v1/images/{quote(name)}", query={"public": public or None}, body=body,
            headers={**_BYTES, **length}, timeout=None))

    def delete(self, name: str) -> None:
        self._transport.call("DELETE", f"/v1/images/{quote(name)}")

    def tag(self, name: str, new_name: str) -> Image:
        """Give it one more name."""
        return Image.of(self._transport.call("POST", f"/v1/images/{quote(name)}/tag",
                                             {"name": new_name}))

    def export(self, name: str, format: str = "oci") -> Response:
        """As a tar stream that other tools load (``format``: ``oci`` or ``docker``)."""
        return self._transport.open("GET", f"/v1/images/{quote(name)}/export",
                                    query={"format": format}, headers={"Accept": "*/*"},
                                    timeout=None)

    def prune(self) -> Dict[str, Any]:
        """Remove what builds of the team cached and no image has; the operator: of every team."""
        return dict(self._transport.call("POST", "/v1/images/prune", {}, timeout=None))

    def pull(self, image: str, **options: Any) -> Lines:
        """Fetch from a registry: a stream of progress whose last object has the image. Options:
        ``name``, ``platform``, ``username``, ``password``, ``insecure``."""
        return self._transport.lines("POST", "/v1/images/pull", {"image": image, **options})

    def push(self, name: str, **options: Any) -> Lines:
        """Send to a registry; options as with ``pull``, and ``image``: where."""
        return self._transport.lines("POST", f"/v1/images/{quote(name)}/push", options)

    def build(self, name: str, context: Union[str, "os.PathLike[str]", None] = None, *,
              data: Optional[Data] = None, dockerfile: Optional[str] = None,
              target: Optional[str] = None, args: Optional[Mapping[str, str]] = None,
              no_cache: bool = False, network: Optional[Network] = None) -> Lines:
        """Build from a directory with a Dockerfile (or a tar as ``data``): a stream of steps and
        output whose last object has the image. ``network``: what its commands may reach, ``open``
        unless given."""
        rules = network if isinstance(network, (str, type(None))) else "\n".join(network["rules"])
        query = {"name": name, "dockerfile": dockerfile, "target": target, "network": rules,
                 "no_cache": no_cache or None, **{f"arg.{k}": v for k, v in (args or {}).items()}}
        if data is not None:
            body, length = body_of(data)
        else:
            top = os.fspath(context) if context is not None else "."
            body, length = (lambda: gzipped(tar_of_directory(top))), {}
        return self._transport.lines("POST", "/v1/images/build", query=query, body=body,
                                     headers={"Content-Type": "application/x-tar", **length},
                                     timeout=None)

    @staticmethod
    def result(lines: Lines) -> Image:
        """Read a pull's, push's or build's stream to the end; its image, or its error raised."""
        image: Optional[Image] = None
        with lines:
            for line in lines:
                if line.get("type") == "image":
                    image = Image.of(line["image"])
        if image is None:
            from .errors import ProtocolError
            raise ProtocolError("the stream ended without an image")
        return image


class Templates(Noun):
    """``client.templates``."""

    def create(self, name: str, image: str, **more: Any) -> Template:
        """Make or replace one; ``more``: ``start_command``, ``ready``, ``env``, ``network``, ``warm`` …
        as in the API's documentation."""
        return Template.of(self._transport.call(
            "POST", "/v1/templates", {"name": name, "image": image, **more}, headers=once()))

    def list(self) -> List[Template]:
        return [Template.of(t) for t in self._pages("/v1/templates", "templates")]

    def get(self, name: str) -> Template:
        return Template.of(self._transport.call("GET", f"/v1/templates/{quote(name)}"))

    def delete(self, name: str) -> None:
        self._transport.call("DELETE", f"/v1/templates/{quote(name)}")


class Names(Noun):
    """``client.names``: names of one's own that lead to a port of a sandbox."""

    def add(self, name: str, sandbox: str, port: int) -> Name:
        """One that is there already is moved."""
        return Name.of(self._transport.call("POST", "/v1/names",
                                            {"name": name, "sandbox": sandbox, "port": port}))

    def list(self) -> List[Name]:
        return [Name.of(n) for n in self._pages("/v1/names", "names")]

    def get(self, name: str) -> Name:
        return Name.of(self._transport.call("GET", f"/v1/names/{quote(name)}"))

    def delete(self, name: str) -> None:
        """It leads nowhere from now on."""
        self._transport.call("DELETE", f"/v1/names/{quote(name)}")


class Keys(Noun):
    """``client.keys``."""

    def create(self, name: str, *, team: Optional[str] = None, role: Optional[str] = None) -> Key:
        """A new key; ``key.key`` is shown this once."""
        return Key.of(self._transport.call("POST", "/v1/keys",
                                           given(name=name, team=team, role=role),
                                           headers=once()))

    def list(self) -> List[Key]:
        return [Key.of(k) for k in self._pages("/v1/keys", "keys")]

    def delete(self, id: str) -> None:
        """Refused from now on."""
        self._transport.call("DELETE", f"/v1/keys/{quote(id)}")


class Teams(Noun):
    """``client.teams``: for operators."""

    def create(self, name: str, quotas: Optional[Mapping[str, Any]] = None) -> Team:
        return Team.of(self._transport.call(
            "POST", "/v1/teams", given(name=name, quotas=dict(quotas) if quotas else None),
            headers=once()))

    def list(self) -> List[Team]:
        return [Team.of(t) for t in self._pages("/v1/teams", "teams")]

    def get(self, name: str) -> Team:
        return Team.of(self._transport.call("GET", f"/v1/teams/{quote(name)}"))

    def update(self, name: str, quotas: Mapping[str, Any]) -> Team:
        return Team.of(self._transport.call("PATCH", f"/v1/teams/{quote(name)}",
                                            {"quotas": dict(quotas)}))

    def delete(self, name: str) -> None:
        self._transport.call("DELETE", f"/v1/teams/{quote(name)}")


class Events(Noun):
    """``client.events``: what changed, in order."""

    def list(self, since: int = 0, *, sandbox: Optional[str] = None, limit: Optional[int] = None
             ) -> List[Event]:
        answer = self._transport.call("GET", "/v1/events", query={
            "since": since, "sandbox": sandbox, "limit": limit})
        return [Event.of(e) for e in answer["events"]]

    def follow(self, since: int = 0, *, sandbox: Optional[str] = None) -> "EventFeed":
        """From ``since`` on, as they happen."""
        return EventFeed(self._transport.lines("GET", "/v1/events", query={
            "since": since, "sandbox": sandbox, "follow": True}))


class EventFeed:
    """A change feed that is followed; close it to leave."""

    def __init__(self, lines: Lines):
        self._lines = lines

    def __iter__(self) -> "EventFeed":
        return self

    def __next__(self) -> Event:
        return Event.of(next(self._lines))

    def close(self) -> None:
        self._lines.close()

    def __enter__(self) -> "EventFeed":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Client:
    """A daemon's client. ``url`` is ``http://…``, ``https://…`` or ``unix:///path/of/socket``
    (default: ``WARREN_URL``, else the admin socket where there is one, else 127.0.0.1:7070);
    ``key`` defaults to ``WARREN_API_KEY``. ``timeout`` is for the daemon's answer, not for
    commands; ``team`` is for operators who act for a team. Safe to share between threads."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *,
                 timeout: Optional[float] = 60.0, retries: int = 3, team: Optional[str] = None,
                 ssl_context: Optional[ssl.SSLContext] = None):
        if url is None:
            url = os.environ.get("WARREN_URL") or (
                "unix://" + _SOCKET if os.access(_SOCKET, os.W_OK) else "http://127.0.0.1:7070")
        if key is None:
            key = os.environ.get("WARREN_API_KEY")
        self.transport = Transport(url, key, timeout, retries, team, ssl_context)
        self.sandboxes = Sandboxes(self.transport)
        self.images = Images(self.transport)
        self.templates = Templates(self.transport)
        self.volumes = Volumes(self.transport)
        self.checkpoints = Checkpoints(self.transport)
        self.secrets = Secrets(self.transport)
        self.names = Names(self.transport)
        self.keys = Keys(self.transport)
        self.teams = Teams(self.transport)
        self.events = Events(self.transport)

    def create(self, image: Optional[str] = None, **more: Any) -> Sandbox:
        """``client.sandboxes.create``."""
        return self.sandboxes.create(image, **more)

    def health(self) -> Dict[str, Any]:
        """Whether the daemon is well; raises ``Unavailable`` where it is not."""
        return dict(self.transport.call("GET", "/v1/health"))

    def host(self) -> Dict[str, Any]:
        """What its host offers."""
        return dict(self.transport.call("GET", "/v1/host"))

    def usage(self, start: Union[str, datetime.datetime, None] = None,
              end: Union[str, datetime.datetime, None] = None, *, sandbox: Optional[str] = None,
              team: Optional[str] = None, step: Optional[str] = None,
              limit: Optional[int] = None, cursor: Optional[str] = None) -> Usage:
        """What was used in a span of time; ``step`` (``hour``, ``day``) divides it."""
        def text(when: Union[str, datetime.datetime, None]) -> Optional[str]:
            if isinstance(when, datetime.datetime):
                return when.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            return when
        return Usage.of(self.transport.call("GET", "/v1/usage", query={
            "from": text(start), "to": text(end), "sandbox": sandbox, "team": team, "step": step,
            "limit": limit, "cursor": cursor}))

    def logs(self, *, follow: bool = False, since: Optional[str] = None,
             level: Optional[str] = None, sandbox: Optional[str] = None) -> Lines:
        """The daemon's own log, one object a line."""
        return self.transport.lines("GET", "/v1/logs", query={
            "follow": follow or None, "since": since, "level": level, "sandbox": sandbox})

    def openapi(self) -> Dict[str, Any]:
        """The API's description."""
        return dict(self.transport.call("GET", "/v1/openapi.json"))

    def close(self) -> None:
        """Close the kept connections; the client can still be used."""
        self.transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
