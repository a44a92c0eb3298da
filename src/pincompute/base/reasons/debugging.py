"""Reasons of sessions with the agents of nodes."""

from __future__ import annotations

from pincompute.base.reasons.reason import infrastructure_error, user_error

DEBUG_AGENT_MISSING = infrastructure_error(
    "DebugAgentMissing",
    409,
    "A platform has no node agent for debugging, or the replica's node has none.",
    "`pin shell` and `pin cp` use the API server instead; `pin ps` and `pin files` need a platform with a real node.",
)
DEBUG_AGENT_UNAVAILABLE = infrastructure_error(
    "DebugAgentUnavailable",
    503,
    "The agent of a node does not answer, has too many sessions, or cannot reach the container runtime.",
    "Repeat the command; `pin status` shows whether the agent runs.",
)
GRANT_REFUSED = user_error(
    "GrantRefused",
    403,
    "The agent of a node refuses a grant: it is used, expired, signed by another key, or for another session.",
    "Repeat the command, which asks the desk for a new grant. If the clocks of desk and node differ, set them.",
)
CONTAINER_GONE = user_error(
    "ContainerGone",
    404,
    "The container of a session does not run any more, or has ended and is deleted already.",
    "`pin get NAME` shows what runs. Files of an ended container remain until its pod is deleted or it restarts twice.",
)
FILES_NOT_COPIED = user_error(
    "FilesNotCopied",
    422,
    "Files cannot be copied: a path does not exist, is not permitted, or an archive has entries that are refused.",
    "The message names the path. Files are read and written with the permissions of the container's user.",
)
