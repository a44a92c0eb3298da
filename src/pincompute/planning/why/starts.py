"""A container that cannot be started: something it needs is not there, or its command is not."""

from __future__ import annotations

import re

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import COMMAND_NOT_FOUND, CONFIGURATION_MISSING, RUNS_AS_ROOT, START_FAILED
from pincompute.planning.snapshot import Container
from pincompute.planning.why.cause import Cause, Copy, Rank, Seen
from pincompute.planning.why.images import PULLING
from pincompute.planning.why.words import ending

_FINE = ("", "ContainerCreating", "PodInitializing", "CrashLoopBackOff")
_PASSING = ("failed to sync", "have not yet been read", "context deadline exceeded", "failed to reserve container name")
"""The node was not ready to tell; it tries again."""
_OBJECT = re.compile(r"\b(?P<kind>configmap|secret) \"(?P<name>[^\"]+)\" not found", re.IGNORECASE)
_KEY = re.compile(r"couldn't find key (?P<key>\S+) in (?P<kind>ConfigMap|Secret) [^/\s]+/(?P<name>\S+)")
_COMMAND = re.compile(r"exec: \"(?P<command>[^\"]+)\"|exec (?P<other>\S+): ")
_NO_COMMAND = ("executable file not found", "no such file or directory", "permission denied", "is a directory")


_WRAPPING = re.compile(r".*(?:error during container init|unable to start container process): ", re.DOTALL)
"""Words about who called whom."""


NEVER_STARTED = ("StartError", "ContainerCannotRun")
"""How a container has ended that never began."""


def look(copy: Copy) -> Seen:
    for each in copy.containers:
        waiting = each.state.waiting
        if waiting and waiting.reason not in (*_FINE, *PULLING):
            yield refused(copy, each, waiting.message or waiting.reason)


def refused(copy: Copy, container: Container, words: str) -> Cause:
    """By the node's own words."""
    rank = Rank.SLOW if any(each in words for each in _PASSING) else Rank.FINAL
    words = _WRAPPING.sub("", words)
    problem = _root(container, words) or missing(copy.owner, words) or _command(container, words)
    if problem is None:
        problem = Problem(START_FAILED, "the container cannot be started", note=ending(words), next=copy.describe)
    return copy.cause(container, problem, rank)


def _root(container: Container, words: str) -> Problem | None:
    if "non-numeric user" in words:
        what = f"the image {container.image} names its user by a word, and nobody can tell that it is not root"
        return Problem(
            RUNS_AS_ROOT,
            what,
            note=ending(words),
            next="write the user as a number in its Containerfile, such as USER 1000",
        )
    if "runAsNonRoot" in words or "breaks non-root policy" in words:
        what = f"the image {container.image} wants to run as root"
        return Problem(RUNS_AS_ROOT, what, note=ending(words), next="add a line such as USER 1000 to its Containerfile")
    return None


def missing(owner: Workload, words: str) -> Problem | None:
    """Only names are told, never what is in them."""
    project = owner.metadata.namespace
    if key := _KEY.search(words):
        kind, name = _spelled(key["kind"]), key["name"]
        what = f"the {kind} '{name}' has no key '{key['key']}'"
        return Problem(CONFIGURATION_MISSING, what, next=f"kubectl describe {kind.lower()} {name} -n {project}")
    if found := _OBJECT.search(words):
        kind, name = _spelled(found["kind"]), found["name"]
        what = f"there is no {kind} '{name}' in {project}"
        word = "configmap" if kind == "ConfigMap" else "secret generic"
        return Problem(
            CONFIGURATION_MISSING,
            what,
            next=f"correct the name in the file, or: kubectl create {word} {name} -n {project}",
        )
    return None


def not_begun(container: Container, words: str) -> Problem:
    """Of a program whose end is all that is left: `refused` knows more where its pod is there."""
    words = _WRAPPING.sub("", words)
    return _command(container, words) or Problem(START_FAILED, "the container cannot be started", note=ending(words))


def _command(container: Container, words: str) -> Problem | None:
    found = _COMMAND.search(words)
    if "no command specified" in words:
        what = f"the image {container.image} has no command, and the file names none"
    elif "exec format error" in words:
        what = f"the image {container.image} is not built for the processors of this cluster"
    elif found and any(each in words for each in _NO_COMMAND):
        what = f"the command '{found['command'] or found['other']}' cannot be run in the image {container.image}"
    else:
        return None
    return Problem(
        COMMAND_NOT_FOUND,
        what,
        note=ending(words),
        next="correct command in the file, such as command: [python3, app.py]",
    )


def _spelled(kind: str) -> str:
    return {"configmap": "ConfigMap", "secret": "Secret"}[kind.lower()]
