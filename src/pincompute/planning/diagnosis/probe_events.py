"""Restarts by the kubelet because a probe fails, and the error of a failing probe: only events tell both.

A program that ends with 0 after the kubelet's signal looks like one that ended by itself, and one that is ready again
looks healthy. The kubelet's event names the probe that it acted on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CRASH_LOOP,
    HEALTH_CHECK_FAILED,
    KILLED,
    PORT_NOT_LISTENING,
    PROBE_FAILED,
    PROGRAM_FAILED,
    PROGRESSING,
)
from pincompute.objects.content import Object
from pincompute.planning.diagnosis.cause import PodContext, is_main_container, template_container
from pincompute.planning.diagnosis.excerpts import excerpt_end
from pincompute.planning.edit_commands import container_path, edit_command
from pincompute.planning.observed_pods import ContainerStatus
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.events import Event

RESTART_WINDOW_S = 600.0
"""Time for which the restart of a program that is ready again counts."""
MIN_RESTARTS = 2
"""Restarts of a program that is ready again, before they are reported."""
_KILLED_BY_PROBE = re.compile(r"Container (?P<container>\S+) failed (?P<probe>liveness|startup) probe")
_RESTARTED = frozenset({CRASH_LOOP, PROGRAM_FAILED, KILLED, PROBE_FAILED, PROGRESSING})
"""Answers that a restart by a probe explains."""
_UNREADY = frozenset({HEALTH_CHECK_FAILED, PORT_NOT_LISTENING, PROBE_FAILED})
_HANDLERS = ("httpGet", "tcpSocket", "grpc")
_TIMEOUTS = ("deadline exceeded", "Timeout", "timed out")
_LEAST_TIMEOUT_S = 5
_DEFAULT_PERIOD_S = 10
_ADVICE = (
    ("statuscode: 4", "correct the path of {probe} in the file"),
    ("connection refused", "correct the port of {probe} in the file"),
    ("malformed HTTP", "correct the scheme or the port of {probe} in the file"),
    ("executable file not found", "correct the command of {probe} in the file"),
)
"""Errors of probes, the first that occurs in the message."""


def restart_by_probe(snapshot: Snapshot, problem: Problem | None, events: Sequence[Event]) -> Problem | None:
    """The failing probe for which the kubelet restarts a container, if that explains the problem or there is none."""
    if problem is not None and problem.reason not in _RESTARTED:
        return None
    pods = {each.metadata.name: each for each in snapshot.pods if each.is_active}
    kills = [each for each in events if each.reason == "Killing" and each.regarding.name in pods]
    found = [(each, match) for each in kills if (match := _KILLED_BY_PROBE.search(each.note))]
    if not found:
        return None
    event, match = max(found, key=lambda each: (each[0].last_seen, each[0].metadata.name))
    context = PodContext(snapshot.owner, pods[event.regarding.name], snapshot.now, snapshot.runtimes)
    container = next((each for each in context.containers if each.name == match["container"]), None)
    if container is None or (container.ready and not _restarts_often(snapshot, container, event)):
        return None
    return _probe_problem(context, container, f"{match['probe']}Probe", _newest_error(event, match["probe"], events))


def with_probe_error(snapshot: Snapshot, problem: Problem, events: Sequence[Event]) -> Problem:
    """The problem of an unready container with the newest error of its readiness probe."""
    name = problem.where.object.removeprefix("pod ").split(" ")[0]
    errors = [each for each in events if each.regarding.name == name and "Readiness probe failed" in each.note]
    if problem.reason not in _UNREADY or not errors:
        return problem
    newest = max(errors, key=lambda each: (each.last_seen, each.metadata.name))
    container = _container_of(problem)
    edit = probe_edit(snapshot.owner, container, "readinessProbe", newest.note) if container else ""
    note = "\n".join(each for each in (problem.note, excerpt_end(newest.note)) if each)
    return problem._replace(note=note, next=edit or problem.next)


def _container_of(problem: Problem) -> str:
    return problem.where.object.partition(" container ")[2]


def _restarts_often(snapshot: Snapshot, container: ContainerStatus, event: Event) -> bool:
    age_s = (snapshot.now - datetime.fromisoformat(event.last_seen)).total_seconds()
    return container.restart_count >= MIN_RESTARTS and age_s < RESTART_WINDOW_S


def _newest_error(killing: Event, probe: str, events: Sequence[Event]) -> str:
    """The error of this probe in the same pod; empty if its event is gone."""
    prefix = f"{probe.capitalize()} probe failed: "
    of_pod = [each for each in events if each.regarding.name == killing.regarding.name and prefix in each.note]
    newest = max(of_pod, key=lambda each: (each.last_seen, each.metadata.name), default=None)
    return newest.note.partition(prefix)[2] if newest else ""


def _probe_problem(context: PodContext, container: ContainerStatus, probe: str, error: str) -> Problem:
    settings = template_container(context.owner, container.name).get(probe, {})
    target = _target_text(settings)
    what = f"the kubelet restarts {context.subject(container)}, as its {probe}{f' ({target})' if target else ''} fails"
    times = f"restarted {container.restart_count} times" if container.restart_count > 1 else ""
    note = "; ".join(each for each in (excerpt_end(error), times) if each)
    where = Where(object=f"{context.where} container {container.name}")
    return Problem(PROBE_FAILED, what, where, note, _advice(context, container, probe, error))


def _target_text(settings: Object) -> str:
    if http := settings.get("httpGet"):
        return f"{http.get('scheme', 'HTTP')} GET {http.get('path', '/')} on port {http.get('port')}"
    if handler := settings.get("tcpSocket") or settings.get("grpc"):
        return f"port {handler.get('port')}"
    command = settings.get("exec", {}).get("command", ())
    return " ".join(str(each) for each in command)


def _advice(context: PodContext, container: ContainerStatus, probe: str, error: str) -> str:
    if edit := probe_edit(context.owner, container.name, probe, error):
        return edit
    advice = next((text for phrase, text in _ADVICE if phrase in error), "correct {probe} in the file")
    return f"{advice.format(probe=probe)}, and: pin deploy FILE"


def probe_edit(owner: Workload, container: str, probe: str, error: str) -> str:
    """The command that corrects a probe of the file which fails with this error; empty if only its author knows how."""
    settings = template_container(owner, container).get(probe, {})
    handler = next((each for each in _HANDLERS if each in settings), "")
    if not handler:
        return ""
    asked, port = settings[handler].get("port"), getattr(owner.spec, "port", 0)
    path = partial(container_path, owner, container, probe)
    if "connection refused" in error and port and is_main_container(owner, container) and asked != port:
        return edit_command(owner, {path(handler, "port"): port})
    if "HTTP response to HTTPS" in error:
        return edit_command(owner, {path(handler, "scheme"): "HTTP"})
    if "malformed HTTP" in error and handler == "httpGet":
        return edit_command(owner, {path("tcpSocket", "port"): asked}, [path(handler)])
    if any(each in error for each in _TIMEOUTS):
        seconds = max(_LEAST_TIMEOUT_S, settings.get("timeoutSeconds", 1) * 2)
        longer = {path("timeoutSeconds"): seconds}
        # A kubelet does not wait for longer than the period.
        if seconds > settings.get("periodSeconds", _DEFAULT_PERIOD_S):
            longer[path("periodSeconds")] = seconds
        return edit_command(owner, longer)
    return ""
