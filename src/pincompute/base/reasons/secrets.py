"""Reasons of secrets and of the secret store."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

SECRET_UNKNOWN = user_error(
    "SecretUnknown",
    404,
    "A project has no secret, or a secret no version, of that name.",
    "`pin secret list` shows the secrets of a project; `pin secret create NAME` makes one.",
)
SECRET_NOT_GRANTED = user_error(
    "SecretNotGranted",
    403,
    "A secret is not granted to the workload or person that asks for it, or another project has none of that name.",
    "An owner of the secret's project grants it: `pin secret grant NAME workload:PROJECT/NAME`.",
)
SECRET_INVALID = user_error(
    "SecretInvalid", 422, "A secret's name, value or grant is invalid, or too large.", "The message names the limit."
)
SECRET_CONFLICT = user_error(
    "SecretConflict",
    409,
    "A secret exists already, or one of its versions is in a state that does not allow the change.",
    "`pin secret show NAME` shows the versions and their states.",
)
SECRETS_NOT_SERVED = infrastructure_error(
    "SecretsNotServed",
    409,
    "A platform has no secret store, or a workload's runtime no part that delivers secrets.",
    "Start the platform with `pin up --runtime`, or roll out a runtime with the part `secrets`.",
)
SECRETS_UNAVAILABLE = infrastructure_error(
    "SecretsUnavailable",
    503,
    "The secret store does not answer, or cannot decrypt or record. Running replicas keep the secrets that they have.",
    "`pin status` shows whether the store runs; replicas that wait for secrets start as soon as it answers.",
)
