"""Warren's client for Python: isolated Linux computers for agents and untrusted code.

    from warren_sandbox import Client

    with Client().sandboxes.create() as box:
        print(box.run("echo hello").stdout)
"""
from .checkpoints import Checkpoints
from .client import Client
from .errors import (ApiError, CommandError, Conflict, ConnectionFailed, Failed, Forbidden,
                     InvalidRequest, NoSpace, NotFound, ProtocolError, RateLimited, RequestTimeout,
                     SandboxGone, Unauthorized, Unavailable, WarrenError)
from .files import Files, PolledWatch, Watch
from .models import (Binding, Change, Checkpoint, Comparison, Entry, Event, ExecEvent, FileEvent, FileUsage, Image, Key, Lease, Match,
                     Name, Network, NetworkEntry, Port, PreviewToken, ProcessInfo, ReplaceResult, Result, SandboxInfo, SandboxUsage,
                     SearchResult, Secret, Team, Template, Usage, VolumeCheckpoint, VolumeInfo,
                     WriteResult)
from .process import Events, Process, Processes
from .sandbox import Sandbox, Sandboxes
from .storage import Secrets, Volume, Volumes

__version__ = "0.1.0"
__all__ = [
    "ApiError", "Binding", "Client", "CommandError", "Conflict", "ConnectionFailed", "Entry", "Event",
    "Events", "ExecEvent", "Failed", "FileEvent", "FileUsage", "Files", "Forbidden", "Image",
    "InvalidRequest", "Key", "Lease", "Match", "Name", "Network", "NetworkEntry", "NoSpace", "NotFound",
    "PolledWatch", "Port", "PreviewToken", "Process", "ProcessInfo", "Processes", "ProtocolError", "RateLimited",
    "ReplaceResult", "RequestTimeout", "Result", "Sandbox", "SandboxGone", "SandboxInfo",
    "SandboxUsage", "Sandboxes", "SearchResult", "Secret", "Secrets", "Team", "Template",
    "Change", "Checkpoint", "Checkpoints", "Comparison", "Unauthorized", "Unavailable", "Usage", "Volume", "VolumeCheckpoint", "VolumeInfo", "Volumes", "WarrenError",
    "Watch", "WriteResult",
]
