"""Status of a pod as a kubelet would report it, for a state of the corpus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from bench.why.corpus import PodState
from pincompute.kube.resource import Object

READY_STATE = PodState()


def pod_status(pod: Object, state: PodState, now: datetime) -> Object:
    """The whole status for a patch; the scheduler's condition stays as it is."""
    spec, ends = pod["spec"], pod["spec"].get("restartPolicy", "Always") != "Always"
    started = now - timedelta(seconds=max(state.unready, state.creating, 5))
    if state.failed:
        return {"phase": "Failed", "reason": state.failed, "message": state.message, **_conditions(pod, state, now, "")}
    affected = _affected_container(spec, state)
    statuses = [_container(each, _own_state(each, affected, state), started, ends) for each in spec["containers"]]
    inits = [_init_container(each, affected, state, started) for each in spec.get("initContainers", ())]
    over = ends and all("terminated" in each["state"] for each in statuses)
    failed = over and any(each["state"]["terminated"]["exitCode"] for each in statuses)
    setting_up = bool(state.creating) or (state.init and not over) or bool(state.waiting)
    phase = "Failed" if failed else "Succeeded" if over else "Pending" if setting_up else "Running"
    if state.init:
        statuses = [_waiting(each, "PodInitializing") for each in spec["containers"]]
        phase = "Failed" if ends and state.exit and state.times == 1 else "Pending"
    ready = all(each["ready"] for each in statuses) and not state.conditions
    return {
        "phase": phase,
        "startTime": _text(started),
        "containerStatuses": statuses,
        **({"initContainerStatuses": inits} if inits else {}),
        **_conditions(pod, state, now, "True" if ready else "False"),
    }


def _affected_container(spec: Object, state: PodState) -> str:
    if state.init:
        return str(spec["initContainers"][0]["name"])
    return state.container or str(spec["containers"][0]["name"])


def _own_state(container: Object, affected: str, state: PodState) -> PodState:
    if container["name"] == affected:
        return state
    return PodState(creating=state.creating) if state.creating else READY_STATE


def _init_container(container: Object, affected: str, state: PodState, started: datetime) -> Object:
    if container["name"] == affected and state.init:
        return _container(container, state, started, ends=False)
    done = {
        "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _text(started), "finishedAt": _text(started)}
    }
    if container.get("restartPolicy") == "Always":
        done = {"running": {"startedAt": _text(started)}}
    return {**_named(container), "ready": True, "started": True, "restartCount": 0, "state": done}


def _container(container: Object, state: PodState, started: datetime, ends: bool) -> Object:
    if state.waiting or state.creating:
        return _waiting(container, state.waiting or "ContainerCreating", state.message)
    running = {"running": {"startedAt": _text(started)}}
    if state.exit is not None:
        return _exited(container, state, started, running, ends=ends)
    if ends and not (state.unready or state.working):
        return _terminated(container, PodState(exit=0), started)
    started_up = not (state.unready and container.get("startupProbe"))
    return {**_named(container), "ready": not state.unready, "started": started_up, "restartCount": 0, "state": running}


def _exited(container: Object, state: PodState, started: datetime, running: Object, *, ends: bool) -> Object:
    if ends and not state.init:
        return _terminated(container, state, started)
    exited = _terminated(container, state, started)
    if state.running:
        return {**exited, "ready": True, "started": True, "state": running, "lastState": exited["state"]}
    if state.times > 1:
        backoff = f"back-off 5m0s restarting failed container={container['name']}"
        return {**_waiting(container, "CrashLoopBackOff", backoff), "lastState": exited["state"],
                "restartCount": state.times - 1}  # fmt: skip
    return exited


def _terminated(container: Object, state: PodState, started: datetime) -> Object:
    reason = state.because or ("Error" if state.exit else "Completed")
    times = {"startedAt": _text(started), "finishedAt": _text(started)}
    ended = {"exitCode": state.exit or 0, "reason": reason, "message": state.message, **times}
    return {**_named(container), "ready": False, "started": False, "restartCount": state.times - 1,
            "state": {"terminated": ended}}  # fmt: skip


def _waiting(container: Object, reason: str, message: str = "") -> Object:
    state = {"waiting": {"reason": reason, "message": message}}
    return {**_named(container), "ready": False, "started": False, "restartCount": 0, "state": state}


def _named(container: Object) -> Object:
    return {"name": container["name"], "image": container["image"], "imageID": ""}


def _conditions(pod: Object, state: PodState, now: datetime, ready: str) -> dict[str, Any]:
    kept = [each for each in pod.get("status", {}).get("conditions", ()) if each["type"] == "PodScheduled"]
    own = {each["type"]: each for each in state.conditions}
    if ready:
        unready = {} if ready == "True" else {"reason": "ContainersNotReady"}
        initialized = "False" if state.init else "True"
        started = "False" if state.creating else "True"
        own = {
            "Initialized": {"status": initialized},
            "PodReadyToStartContainers": {"status": started},
            "ContainersReady": {"status": ready, **unready},
            "Ready": {"status": ready, **unready},
            **own,
        }
    filled = [{**each, "type": name, "lastTransitionTime": _text(now)} for name, each in own.items()]
    return {"conditions": [*kept, *filled]}


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
