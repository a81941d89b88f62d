"""What goes wrong, as exceptions. ``code`` is the API's stable word for it; the text is for people."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from .models import Result


class WarrenError(Exception):
    """Everything this package raises on purpose."""

    code = "error"


class ConnectionFailed(WarrenError):
    """The daemon could not be reached, or the connection broke before its answer."""

    code = "connection_failed"


class RequestTimeout(WarrenError):
    """The daemon did not answer within the client's own time limit."""

    code = "request_timeout"


class ProtocolError(WarrenError):
    """An answer that is not what the API promises: most often something else listens there."""

    code = "protocol_error"


class CommandError(WarrenError):
    """A command that was to succeed (``check=True``) and did not; ``result`` is all of it."""

    code = "command_failed"

    def __init__(self, result: "Result"):
        self.result = result
        tail = (result.stderr or result.stdout).strip()[-2000:]
        end = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        super().__init__(f"command ended with {end} ({result.reason})" + (f": {tail}" if tail else ""))


class ApiError(WarrenError):
    """The daemon refused. ``status`` is HTTP's, ``details`` the other members of its error."""

    def __init__(self, status: int, code: str, message: str, request_id: Optional[str] = None,
                 retry_after: Optional[float] = None, details: Optional[Dict[str, Any]] = None):
        super().__init__(f"{message} ({code})")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        self.retry_after = retry_after
        self.details = details or {}


class InvalidRequest(ApiError):
    """400, 413, 422: the request itself must change."""


class Unauthorized(ApiError):
    """401: no key, or one that is not known."""


class Forbidden(ApiError):
    """403: the key may not, a quota is used up, or the sandbox's user lacks the right."""


class NotFound(ApiError):
    """404: no such sandbox, process, file, image …"""


class SandboxGone(NotFound):
    """404 ``sandbox_gone``: it existed and ended; ``cause`` says why, ``ended_at`` when."""

    @property
    def cause(self) -> Optional[str]:
        return self.details.get("cause")

    @property
    def ended_at(self) -> Optional[str]:
        return self.details.get("ended_at")


class Conflict(ApiError):
    """409, 412: not in the state that it is in now."""


class Failed(ApiError):
    """424: something that this depends on failed: a registry, a template's start."""


class RateLimited(ApiError):
    """429, still after the retries; ``retry_after`` says when to come back."""


class Unavailable(ApiError):
    """503: for the moment not possible, still after the retries."""


class NoSpace(ApiError):
    """507: the sandbox's disk limit, or the host's disk, is reached."""


_BY_STATUS = {400: InvalidRequest, 413: InvalidRequest, 422: InvalidRequest, 401: Unauthorized,
              403: Forbidden, 404: NotFound, 409: Conflict, 412: Conflict, 424: Failed,
              429: RateLimited, 503: Unavailable, 507: NoSpace}


def error_of(status: int, error: Dict[str, Any], retry_after: Optional[float] = None) -> ApiError:
    """The exception for an answer's ``error`` object, or for the error line of a stream."""
    rest = dict(error)
    code = str(rest.pop("code", "unknown"))
    message = str(rest.pop("message", f"HTTP {status}"))
    request_id = rest.pop("request_id", None)
    kind = SandboxGone if code == "sandbox_gone" else _BY_STATUS.get(status, ApiError)
    return kind(status, code, message, request_id, retry_after, rest)
