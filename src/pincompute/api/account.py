"""All that is known of one workload: what the desk answers to `pin show` and `pin why`."""

from __future__ import annotations

from pincompute.api.summary import Summary
from pincompute.api.wire import Wire
from pincompute.objects.content import Object


class CopyAccount(Wire, frozen=True, omit_defaults=False):
    """One pod."""

    name: str
    node: str = ""
    state: str = ""
    ready: bool = False
    restarts: int = 0
    since: str = ""


class NativeAccount(Wire, frozen=True, omit_defaults=False):
    name: str
    """`Deployment/hello`."""
    since: str = ""


class EventAccount(Wire, frozen=True, omit_defaults=False):
    """What Kubernetes said, however often and of however many objects."""

    about: str
    """`Pod/hello-1`, or `3 Pods`."""
    warning: bool
    reason: str
    note: str
    count: int
    last: str


class RevisionAccount(Wire, frozen=True, omit_defaults=False):
    number: int
    at: str
    changes: list[str] = []
    """What it changed, such as `replicas 1 -> 3`."""
    runtime: int = 0
    images: dict[str, str] = {}
    """The digest of each container's image."""


class Account(Wire, frozen=True, omit_defaults=False):
    summary: Summary
    resource: Object
    """The workload itself, as the cluster has it."""
    copies: list[CopyAccount] = []
    natives: list[NativeAccount] = []
    events: list[EventAccount] = []
    """The newest last."""
    history: list[RevisionAccount] = []
    """The eldest first."""


class Answer(Wire, frozen=True, omit_defaults=False):
    """Why a workload is not as wanted, or that nothing is wrong."""

    label: str
    wrong: bool
    reason: str
    what: str
    where: str = ""
    note: str = ""
    next: str = ""
    waits: str = ""
    """For whom, where it is not as wanted."""


class Changed(Wire, frozen=True, omit_defaults=False):
    """What an edit did."""

    summary: Summary
    said: list[str]
    written: bool = True
    """False where it was so already."""
