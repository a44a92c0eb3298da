"""Reasons of runtimes, their parts and rolls."""

from __future__ import annotations

from pincompute.base.reasons.reason import Actor, info, infrastructure_error, user_error

RUNTIME_UNKNOWN = user_error(
    "RuntimeUnknown", 404, "No runtime of that number exists.", "The message lists the runtimes."
)
RUNTIME_MISSING = infrastructure_error(
    "RuntimeMissing",
    409,
    "A batch workload started with a runtime that has since been deleted.",
    "Restore the runtime until the work is finished, or stop the work.",
)
HELD_RUNTIME_MISSING = user_error(
    "HeldRuntimeMissing",
    409,
    "A workload holds a runtime that does not exist.",
    "Hold one of the runtimes in the message, or remove `hold` from the file.",
)
PART_MISSING = infrastructure_error(
    "PartMissing",
    409,
    "A runtime names a part that does not exist.",
    "Restore the PinterestSidecar of that name, or create a runtime without it.",
)
PINNED_REVISION_MISSING = infrastructure_error(
    "PinnedRevisionMissing",
    409,
    "A runtime pins a revision of a daemon that has no record, or a daemon that does not exist.",
    "Create a runtime that pins one of the recorded revisions in the message.",
)
PART_CONFLICT = user_error(
    "PartConflict",
    409,
    "A workload and a part of its runtime use the same port, path, variable or name.",
    "Choose another one in the workload's file; the part is the same for every workload.",
)
PARTS_CONFLICT = infrastructure_error(
    "PartsConflict",
    409,
    "Two parts of a runtime use the same port, path, variable or name, or one requires a part that is missing.",
    "Create a new version of one of them, and a runtime with it.",
)
PART_UNKNOWN = user_error(
    "PartUnknown",
    422,
    "A workload configures a part that does not serve it.",
    "Use one of the part names in the message.",
)
PARAMETER_INVALID = user_error(
    "ParameterInvalid",
    422,
    "A workload sets a part's parameter that does not exist, or gives it an invalid value.",
    "The message names the expected value.",
)
RUNTIME_PREPARED = info(
    "RuntimePrepared",
    "A runtime exists and is not rolled out.",
    "Set `roll: {}` on it to roll it out.",
    actor=Actor.INFRASTRUCTURE,
)
RUNTIME_SUPERSEDED = info(
    "RuntimeSuperseded", "A newer runtime is current; only holds keep this one in use.", actor=Actor.INFRASTRUCTURE
)
ROLL_STOPPED = info(
    "RollStopped",
    "A roll was stopped.",
    "Fix the problem in the next runtime, or remove `roll.stopped` to roll this one out again.",
    actor=Actor.INFRASTRUCTURE,
)
ROLL_UNKNOWN = user_error(
    "RollUnknown", 404, "No runtime is being rolled out.", "`pin runtime status` shows the current runtime."
)
ROLL_UNHEALTHY = infrastructure_error(
    "RollUnhealthy",
    409,
    "Workloads fail since a roll reached them, and the roll has halted.",
    "`pin why` explains the workloads in the message; `pin runtime stop --back` rolls back.",
)
RUNTIME_OUTDATED = user_error(
    "RuntimeOutdated",
    409,
    "Pods of a workload use a runtime that was replaced more than 30 days ago, without a hold.",
    "`pin restart` recreates them with the current runtime; batch work gets it when it is run again.",
)
