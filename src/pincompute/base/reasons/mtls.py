"""Reasons of mutual TLS between workloads. The proxy writes three of them into the header Pin-Error."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

MTLS_NOT_SERVED = infrastructure_error(
    "MtlsNotServed",
    409,
    "A workload has `callers` or `calls`, and its runtime no part that is the proxy.",
    "Start the platform with `pin up --runtime`, or roll out a runtime with the part `mtls`.",
)
CALLER_FORGEABLE = user_error(
    "CallerForgeable",
    422,
    "A service with `callers` has a public address, at an ingress that may pass on the header `Pin-Caller` of clients.",
    "Set `loadBalancer: {internal: true}`, and use a service of its own for the public address.",
)
CALL_REFUSED = user_error(
    "CallRefused",
    502,
    "A workload has refused the connection of another one, which is not among its callers or has no valid certificate.",
    "The owner of the called workload adds PROJECT/WORKLOAD of the caller to `callers`.",
)
CALLEE_UNREACHABLE = user_error(
    "CalleeUnreachable",
    502,
    "A called workload does not exist, has no `callers`, or has no ready replica.",
    "`pin why` of the called workload; its owner adds the caller to `callers`.",
)
APPLICATION_UNREACHABLE = user_error(
    "ApplicationUnreachable",
    502,
    "The application of a called workload does not answer on its port.",
    "`pin why` and `pin logs` of the called workload.",
)
