"""Reasons of commands, settings and documents."""

from __future__ import annotations

from pincompute.base.reasons.reason import internal_error, user_error

USAGE = user_error(
    "Usage",
    400,
    "A command was called with arguments it does not accept.",
    "Read the message, or `--help` of the command.",
)
SETTING_INVALID = user_error(
    "SettingInvalid",
    400,
    "A setting has an invalid value.",
    "`pin config view --origin` shows where each value comes from.",
)
INTERNAL = internal_error(
    "Internal", "An operation failed unexpectedly.", "Report it together with the log that the message names."
)
DOCUMENT_INVALID = user_error(
    "DocumentInvalid",
    422,
    "A document is not valid YAML, or violates the schema of its kind.",
    "Open the file at the line that the message names.",
)
KIND_UNKNOWN = user_error(
    "KindUnknown",
    422,
    "The platform does not serve the kind of a document.",
    "Compare `apiVersion` and `kind` with the examples.",
)
EXTRA_MISSING = user_error(
    "ExtraMissing",
    500,
    "An optional part of PinCompute that is needed here is not installed.",
    "Install it as the message says.",
)
