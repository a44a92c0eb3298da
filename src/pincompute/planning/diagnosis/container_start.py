"""Containers that cannot be started: missing configuration, a command that does not exist, or a forbidden user."""

from __future__ import annotations

import json
import re
import shlex

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import COMMAND_NOT_FOUND, CONFIGURATION_MISSING, RUNS_AS_ROOT, START_FAILED
from pincompute.planning.diagnosis.cause import Cause, Causes, PodContext, Rank
from pincompute.planning.diagnosis.excerpts import excerpt_end
from pincompute.planning.diagnosis.images import IMAGE_PULL_REASONS
from pincompute.planning.observed_pods import ContainerStatus

_NORMAL_WAITING_REASONS = ("", "ContainerCreating", "PodInitializing", "CrashLoopBackOff")
"""Waiting reasons that are no start failure, or that another check reports."""
_TRANSIENT_MESSAGES = (
    "failed to sync", "have not yet been read", "context deadline exceeded", "failed to reserve container name",
)  # fmt: skip
"""The kubelet was not ready itself, and tries again."""
_MISSING_OBJECT = re.compile(r"\b(?P<kind>configmap|secret) \"(?P<name>[^\"]+)\" not found", re.IGNORECASE)
_MISSING_KEY = re.compile(r"couldn't find key (?P<key>\S+) in (?P<kind>ConfigMap|Secret) [^/\s]+/(?P<name>\S+)")
_COMMAND = re.compile(r"exec: \"(?P<command>[^\"]+)\"|exec (?P<other>\S+): ")
_NOT_EXECUTABLE = ("executable file not found", "no such file or directory", "is a directory")
_EXEC_ERROR = re.compile(
    r"^(?:\S+: )*exec \S+: (?:exec format error|no such file or directory|permission denied)$", re.MULTILINE
)
"""The last words of a container runtime's own process, which is replaced by the program."""
_PREFIX = re.compile(r".*(?:error during container init|unable to start container process): ", re.DOTALL)
"""The call chain of the container runtime, without information for users."""
NEVER_STARTED_REASONS = ("StartError", "ContainerCannotRun")
"""Termination reasons of containers in which the program never ran."""


def check_container_start(context: PodContext) -> Causes:
    for container in context.containers:
        waiting = container.state.waiting
        if waiting and waiting.reason not in (*_NORMAL_WAITING_REASONS, *IMAGE_PULL_REASONS):
            yield start_failure_cause(context, container, waiting.message or waiting.reason)


def start_failure_cause(context: PodContext, container: ContainerStatus, message: str) -> Cause:
    """The cause behind the kubelet's message about a container that did not start."""
    rank = Rank.TRANSIENT if any(each in message for each in _TRANSIENT_MESSAGES) else Rank.PERMANENT
    message = _PREFIX.sub("", message)
    problem = (
        _root_user_problem(container, message)
        or missing_configuration_problem(context.owner, message)
        or _command_problem(container, message)
    )
    if problem is None:
        what = "the container cannot be started"
        problem = Problem(START_FAILED, what, note=excerpt_end(message), next=context.show_command)
    return context.container_cause(container, problem, rank)


def _root_user_problem(container: ContainerStatus, message: str) -> Problem | None:
    if "non-numeric user" in message:
        what = f"image {container.image} names its user, which could be root: a number is required"
        next_ = "set the user by number in its Containerfile, such as USER 1000"
        return Problem(RUNS_AS_ROOT, what, note=excerpt_end(message), next=next_)
    if "runAsNonRoot" in message or "breaks non-root policy" in message:
        what = f"image {container.image} runs as root, which is not allowed"
        next_ = "add a line such as USER 1000 to its Containerfile"
        return Problem(RUNS_AS_ROOT, what, note=excerpt_end(message), next=next_)
    return None


def missing_configuration_problem(owner: Workload, message: str) -> Problem | None:
    """A ConfigMap, Secret or key that does not exist. Messages contain names only, never values."""
    project = owner.metadata.namespace
    if key := _MISSING_KEY.search(message):
        kind, name = _kind_name(key["kind"]), key["name"]
        what = f"{kind} '{name}' has no key '{key['key']}'"
        field = "data" if kind == "ConfigMap" else "stringData"
        patch = shlex.quote(json.dumps({field: {key["key"]: "VALUE"}}))
        command = f"kubectl patch {kind.lower()} {name} -n {project} --type merge -p {patch}"
        return Problem(CONFIGURATION_MISSING, what, next=f"correct the key in the file, or: {command}")
    if found := _MISSING_OBJECT.search(message):
        kind, name = _kind_name(found["kind"]), found["name"]
        what = f"no {kind} '{name}' in {project}"
        type_ = "configmap" if kind == "ConfigMap" else "secret generic"
        next_ = f"correct the name in the file, or: kubectl create {type_} {name} -n {project}"
        return Problem(CONFIGURATION_MISSING, what, next=next_)
    return None


def start_failure_problem(container: ContainerStatus, message: str) -> Problem:
    """The problem of a container after its pod was deleted; `start_failure_cause` knows more while the pod exists."""
    message = _PREFIX.sub("", message)
    what = "the container cannot be started"
    return _command_problem(container, message) or Problem(START_FAILED, what, note=excerpt_end(message))


def is_exec_error(message: str) -> bool:
    """True for the last line of a container whose program was never executed, though the container was started."""
    return bool(_EXEC_ERROR.search(message.rstrip()))


def _command_problem(container: ContainerStatus, message: str) -> Problem | None:
    found = _COMMAND.search(message)
    name = (found["command"] or found["other"]) if found else ""
    next_ = "correct command in the file, such as command: [python3, app.py]"
    if "no command specified" in message:
        what = f"image {container.image} has no command, and the file sets none"
    elif "exec format error" in message:
        what = f"image {container.image} is built for another processor than that of this cluster"
        next_ = "build it for the cluster's processors, such as with --platform linux/amd64"
    elif found and "permission denied" in message:
        what = f"command '{name}' is not executable in image {container.image}"
        next_ = f"add a line such as RUN chmod +x {name} to its Containerfile"
    elif found and any(each in message for each in _NOT_EXECUTABLE):
        what = f"command '{name}' cannot be executed in image {container.image}"
    else:
        return None
    return Problem(COMMAND_NOT_FOUND, what, note=excerpt_end(message), next=next_)


def _kind_name(kind: str) -> str:
    return {"configmap": "ConfigMap", "secret": "Secret"}[kind.lower()]
