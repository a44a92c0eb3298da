"""Reasons of the desk: authentication, authorization, overload, submissions and projects."""

from __future__ import annotations

from pincompute.base.reasons.reason import Actor, info, infrastructure_error, user_error

DESK_UNREACHABLE = infrastructure_error(
    "DeskUnreachable", 503, "The desk did not respond.", "`pin status` shows whether it runs."
)
VERSIONS_DIFFER = user_error(
    "VersionsDiffer",
    409,
    "The versions of `pin` and of the desk are incompatible.",
    "`pin up` restarts the desk in the version of this command.",
)
UNAUTHENTICATED = user_error(
    "Unauthenticated",
    401,
    "A request carries no valid credentials, or a login has expired.",
    "`pin login` signs you in; the token of `pin up` is sent automatically.",
)
SIGNED_IN_AS_OTHER = user_error(
    "SignedInAsOther",
    409,
    "A sign-in link of one user was opened in a browser in which another one is signed in.",
    "Sign out first. If the link came from somebody else, do not open it: you would work as they.",
)
SIGN_IN_NOT_CONFIGURED = infrastructure_error(
    "SignInNotConfigured",
    404,
    "The desk has no OpenID provider: only the local token is accepted.",
    "`pin desk --issuer https://…` configures a provider.",
)
SIGN_IN_UNAVAILABLE = infrastructure_error(
    "SignInUnavailable",
    503,
    "The OpenID provider did not respond, so that new tokens cannot be verified.",
    "Recently verified tokens remain valid for minutes; the message holds the request and the response.",
)
CROSS_SITE = user_error(
    "CrossSiteRequest",
    403,
    "A browser sent its session with a request that no page of the desk has caused, or without the session's token.",
    "Pages send the header `Pin-Csrf` with the `csrf` of `GET /session`; programs use a bearer token.",
)
SESSION_LIMIT = infrastructure_error(
    "SessionLimit",
    503,
    "The desk has as many signed-in browsers or unused sign-in links as it stores.",
    "Sessions end by themselves after two unused hours; `pin open --sign-out` ends your own.",
)
FORBIDDEN = user_error(
    "Forbidden",
    403,
    "The caller's roles do not permit the operation.",
    "The message names the role that does, its members, and a contact; `pin whoami` shows your roles.",
)
TOO_MANY_REQUESTS = user_error(
    "TooManyRequests",
    429,
    "The caller exceeds the rate or concurrency limit of one client.",
    "Wait for the seconds in Retry-After and send fewer requests at a time; `pin` does so by itself.",
)
DESK_BUSY = infrastructure_error(
    "DeskBusy",
    429,
    "The desk is at its capacity and did not begin to process the request.",
    "Wait for the seconds in Retry-After; if it persists, check that the cluster responds (`pin status`).",
)
DATABASE_FULL = infrastructure_error(
    "DatabaseFull",
    507,
    "The disk of the desk's database is full, so that the desk stores and accepts nothing.",
    "Free disk space, or enlarge the volume; the desk accepts requests again by itself.",
)
REQUEST_TIMEOUT = user_error(
    "RequestTimeout",
    408,
    "A request body was not received in time.",
    "Send it again, complete and with the correct Content-Length.",
)
PATH_UNKNOWN = user_error(
    "PathUnknown", 404, "No endpoint exists at this path.", "`GET /v1/` describes every endpoint."
)
METHOD_UNKNOWN = user_error(
    "MethodUnknown", 405, "The endpoint does not support this method.", "The `Allow` header lists the methods."
)
WEBSOCKET_REQUIRED = user_error(
    "WebsocketRequired",
    426,
    "The endpoint requires a websocket.",
    "Use `pin shell`, `pin port-forward`, or a websocket library.",
)
IDEMPOTENCY_KEY_REUSED = user_error(
    "IdempotencyKeyReused",
    422,
    "An idempotency key was reused for a different request.",
    "Send the same request to get its result, or use a new key.",
)
SUBMISSION_UNKNOWN = user_error(
    "SubmissionUnknown", 404, "No submission of that id exists in the project.", "Check the id."
)
DELIVERY_PENDING = info(
    "DeliveryPending",
    "A submission is accepted and recorded, and not yet delivered to its cluster.",
    "No action needed: it is delivered as soon as the cluster responds.",
    actor=Actor.INFRASTRUCTURE,
    http_status=202,
)
SET_REFUSED = user_error(
    "SetRefused",
    409,
    "Another document of the same set was refused, so that nothing of the set was accepted.",
    "Fix the refused documents, and deploy the set again.",
)
CONFLICT = user_error(
    "Conflict",
    409,
    "Another change was written after the workload was read; nothing was changed.",
    "`pin show NAME` shows its current state; then run the same command again.",
)
PROJECT_UNKNOWN = user_error(
    "ProjectUnknown",
    404,
    "No project of that name exists.",
    "`kubectl get namespaces` lists the namespaces of projects.",
)
PROJECT_TERMINATING = user_error(
    "ProjectTerminating",
    409,
    "The project's namespace is terminating.",
    "It is recreated once it is gone; the message says what the deletion waits for.",
)
PROJECT_NOT_EMPTY = user_error(
    "ProjectNotEmpty",
    409,
    "A project that has workloads cannot be deleted.",
    "`pin get -p PROJECT` lists its workloads; `pin delete` deletes them.",
)
QUOTA_USED_UP = user_error(
    "QuotaUsedUp",
    403,
    "The project's quota is used up: running workloads continue, and no further pod starts.",
    "Delete or scale down what is not needed, or ask for a larger quota.",
)
QUOTA_EXCEEDED = user_error(
    "QuotaExceeded",
    403,
    "The project uses more than its quota, which was reduced: running workloads continue, and no further pod starts.",
    "Delete or scale down what is not needed, or ask for a larger quota.",
)
QUOTA_TOO_SMALL = user_error(
    "QuotaTooSmall",
    403,
    "A submission exceeds what is left of the project's quota. Nothing was changed.",
    "Delete or scale down what is not needed, or ask the project's owner for a larger quota.",
)
TIER_CLOSED = user_error(
    "TierClosed",
    403,
    "The project has no quota for the tier.",
    "Choose a tier of its quota, or ask the project's owner for one.",
)
INSIGHT_MISSING = infrastructure_error(
    "InsightMissing",
    409,
    "The desk has no insight, so that there is no search over projects, no change stream and no history.",
    "Start `pin insight`, and give its address to the desk with `--insight`.",
)
INSIGHT_UNAVAILABLE = infrastructure_error(
    "InsightUnavailable",
    503,
    "The insight process does not answer, so that there is no search over projects, no change stream and no history.",
    "`pin status` shows whether it runs; `pin get` and `pin show` read from the desk meanwhile.",
)
INSIGHT_BEHIND = infrastructure_error(
    "InsightBehind",
    409,
    "The insight process has not received a write yet that its answer must include.",
    "No action needed: the desk reads from the cluster in this case.",
)
