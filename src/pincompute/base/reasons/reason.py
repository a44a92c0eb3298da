"""The type of a reason, the registry of all reasons, and one constructor for each actor."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Actor(StrEnum):
    """Who resolves a problem."""

    USER = "you"
    INFRASTRUCTURE = "the infrastructure team"
    MAINTAINERS = "the makers of PinCompute"
    NONE = "none"
    """There is nothing to resolve."""


class Severity(StrEnum):
    OK = "ok"
    """The goal is reached."""
    INFO = "info"
    """In progress, or a state that was asked for, such as a pause."""
    ERROR = "error"


class Reason(NamedTuple):
    code: str
    """CamelCase, as conditions and error responses carry it. It is part of the API."""
    actor: Actor
    severity: Severity
    http_status: int
    meaning: str
    remedy: str

    @property
    def is_problem(self) -> bool:
        return self.severity is Severity.ERROR


REASONS: dict[str, Reason] = {}
"""Every reason by its code. Complete once `pincompute.base.reasons` is imported."""

NO_ACTION = "No action needed."


def user_error(code: str, http_status: int, meaning: str, remedy: str) -> Reason:
    """An error that the caller resolves."""
    return _register(Reason(code, Actor.USER, Severity.ERROR, http_status, meaning, remedy))


def infrastructure_error(code: str, http_status: int, meaning: str, remedy: str) -> Reason:
    """An error that the infrastructure team resolves."""
    return _register(Reason(code, Actor.INFRASTRUCTURE, Severity.ERROR, http_status, meaning, remedy))


def internal_error(code: str, meaning: str, remedy: str) -> Reason:
    """A bug of ours."""
    return _register(Reason(code, Actor.MAINTAINERS, Severity.ERROR, 500, meaning, remedy))


def ok(code: str, meaning: str) -> Reason:
    """A goal that is reached."""
    return _register(Reason(code, Actor.NONE, Severity.OK, 200, meaning, NO_ACTION))


def info(
    code: str, meaning: str, remedy: str = NO_ACTION, *, actor: Actor = Actor.USER, http_status: int = 200
) -> Reason:
    """A state that is no error. The remedy says how to leave it, where that is a choice."""
    return _register(Reason(code, actor, Severity.INFO, http_status, meaning, remedy))


def _register(reason: Reason) -> Reason:
    assert reason.code not in REASONS, f"{reason.code} is registered twice"
    REASONS[reason.code] = reason
    return reason


def find_reason(code: str) -> Reason | None:
    """The reason of a code in a stored condition or decision, which may be of an earlier version."""
    return REASONS.get(FORMER_CODES.get(code, code))


FORMER_CODES = {
    "AlreadyBroken": "FaultAlreadyInjected",
    "ChangedMeanwhile": "Conflict",
    "CopyFailed": "ReplicaFailed",
    "CopyLost": "ReplicaLost",
    "CopyRefused": "PodRejected",
    "CopyUnknown": "ReplicaUnknown",
    "GangSplit": "GangPartiallyScheduled",
    "GateClosed": "ReadinessGateClosed",
    "GlassBroken": "BreakGlassActive",
    "GlassOverdue": "BreakGlassExpired",
    "GlassRefused": "BreakGlassInvalid",
    "HeldElsewhere": "ManagedElsewhere",
    "HoldGone": "HeldRuntimeMissing",
    "KeyReused": "IdempotencyKeyReused",
    "KubeflowSilent": "KubeflowNotResponding",
    "LandingUnknown": "LandingNotConfigured",
    "LogsAway": "LogsUnavailable",
    "NobodySignsIn": "SignInNotConfigured",
    "NotAllowed": "Forbidden",
    "NotInTime": "TimedOut",
    "NotLeading": "NotLeader",
    "NotMade": "PodNotCreated",
    "NotOpen": "ProjectNotOpen",
    "NotOurs": "NotOwned",
    "NotPrepared": "PodSetupSlow",
    "NotSignedIn": "Unauthenticated",
    "OnItsWay": "DeliveryPending",
    "OperatorSilent": "OperatorNotResponding",
    "PartGone": "PartMissing",
    "PartsDisagree": "PartsConflict",
    "PolicyUnclear": "PolicyInvalid",
    "PortSilent": "PortNotListening",
    "Prepared": "RuntimePrepared",
    "PreparesLong": "InitContainerSlow",
    "ProjectEnding": "ProjectTerminating",
    "RequestSlow": "RequestTimeout",
    "RolloutLate": "RolloutStalled",
    "RuntimeGone": "RuntimeMissing",
    "RuntimeOld": "RuntimeOutdated",
    "SignInAway": "SignInUnavailable",
    "SpecUnreadable": "SpecUndecodable",
    "StillThere": "DeletionStuck",
    "Stopped": "RollStopped",
    "Superseded": "RuntimeSuperseded",
    "TakingOver": "AdoptionInProgress",
    "UpgradeNeeded": "WebsocketRequired",
}
"""Codes of version 0.1, which conditions and decisions may still carry. Removed in version 0.3."""
