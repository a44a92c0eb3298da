"""Reasons of configuration bundles: publishing them, naming them in a workload, and bringing them into pods."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

CONFIG_INVALID = user_error(
    "ConfigInvalid",
    422,
    "A configuration bundle breaks a rule: its files, their paths or sizes, or a name.",
    "Correct the files that the message names.",
)
CONFIG_UNKNOWN = user_error(
    "ConfigUnknown",
    404,
    "No configuration bundle of that name or version exists, or the project may not read it.",
    "`pin config list` lists the bundles of a project; owners let other projects read one with `pin config share`.",
)
CONFIG_VERSION_GONE = user_error(
    "ConfigVersionGone",
    409,
    "A rollback needs a version of a configuration bundle that was deleted.",
    "Publish its files again, and deploy the revision's file; or roll back to another revision.",
)
CONFIG_IN_USE = user_error(
    "ConfigInUse",
    409,
    "A configuration bundle cannot be deleted, because workloads have it.",
    "Remove it from their files first; the message names them.",
)
CONFIG_LIMIT = user_error(
    "ConfigLimit",
    507,
    "The configuration bundles of a project have reached a limit of the store.",
    "Delete bundles that are not used any more: `pin config list`, `pin config delete`.",
)
CONFIG_UNRESOLVED = user_error(
    "ConfigUnresolved",
    409,
    "A workload names configuration bundles whose versions the desk has not determined.",
    "Deploy its file by the desk: `pin deploy FILE`.",
)
CONFIG_NOT_DELIVERED = infrastructure_error(
    "ConfigNotDelivered",
    409,
    "A workload names configuration bundles, and its runtime has no part that brings them into its pods.",
    "Add the part `config`, for live bundles `config-live`, to the runtime; or remove `config` from the file.",
)
CONFIG_MISSING = infrastructure_error(
    "ConfigMissing",
    503,
    "A pod waits for configuration bundles that it could not fetch yet, and its application has not started.",
    "`pin status` shows whether the config store runs; the pod continues by itself as soon as it has the files.",
)
CONFIG_REJECTED = user_error(
    "ConfigRejected",
    409,
    "The config store has not the configuration bundle that a pod asked for, or not with the digest of the revision.",
    "Deploy the file again, so that the desk determines the versions anew.",
)
CONFIG_STORE_MISSING = infrastructure_error(
    "ConfigStoreMissing",
    409,
    "The platform has no config store.",
    "Run a platform with a real node, which has one.",
)
CONFIG_STORE_UNAVAILABLE = infrastructure_error(
    "ConfigStoreUnavailable",
    503,
    "The config store does not respond, so that bundles can neither be published nor deployed.",
    "`pin status` shows whether it runs. Running workloads keep their files.",
)
CONFIG_STORE_FULL = infrastructure_error(
    "ConfigStoreFull",
    507,
    "The disk of the config store is full.",
    "Free space on it; nothing that was published is lost.",
)
