"""The scheduler and the kubelet: binds pods to nodes; starts, ends and removes their containers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from pincompute.kube.resource import NODES, PODS, Object
from pincompute.objects.times import format_time
from simulation.controllers.pods import pod_phase
from simulation.object_store import ObjectStore

START_DELAY_S, READY_DELAY_S, END_DELAY_S, REMOVE_DELAY_S = 0.5, 1.0, 2.0, 0.5
"""Seconds after binding until containers run, are ready and have ended; and from deletion until the pod is gone."""
UNPULLABLE_IMAGE = "broken"
"""Marks an image, by its name, that cannot be pulled."""
FAILING_IMAGE = "failing"
"""Marks an image with a program that exits with an error."""
SLOW_IMAGE, SLOW_END_DELAY_S = "slow", 85.0
"""Marks an image with a program that runs this many seconds."""


def schedule_pods(store: ObjectStore) -> None:
    nodes = [each["metadata"]["name"] for each in store.list_all(NODES)]
    for pod in store.list_all(PODS):
        if pod["spec"].get("nodeName") and not _has_condition(pod, "PodScheduled"):
            store.change(PODS, pod, lambda each: _set_condition(each, "PodScheduled", "True", store))
        elif not pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
            store.change(
                PODS, pod, lambda each: _set_condition(each, "PodScheduled", "False", store, "SchedulingGated")
            )
        elif not pod["spec"].get("nodeName"):
            load = dict.fromkeys(nodes, 0)
            for each in store.list_all(PODS):
                if each["spec"].get("nodeName") in load:
                    load[each["spec"]["nodeName"]] += 1
            node = min(load, key=lambda name: (load[name], name))
            store.change(PODS, pod, partial(_bind_pod, node=node, store=store))


def _bind_pod(pod: Any, *, node: str, store: ObjectStore) -> None:
    pod["spec"]["nodeName"] = node
    _set_condition(pod, "PodScheduled", "True", store)


def run_pods(store: ObjectStore) -> float | None:
    """Runs the pods that are bound to a node; returns when the next of them changes state."""
    waits = [_run_pod(store, each) for each in store.list_all(PODS) if each["spec"].get("nodeName")]
    return min((each for each in waits if each is not None), default=None)


def _run_pod(store: ObjectStore, pod: Object) -> float | None:
    metadata = pod["metadata"]
    if metadata.get("deletionTimestamp"):
        left = _seconds_left(store, pod, "deleted", REMOVE_DELAY_S)
        if left <= 0:
            store.remove(PODS, pod)
        return left if left > 0 else None
    known = f"done {metadata['uid']}"
    if pod_phase(pod) in {"Succeeded", "Failed"} or store.controller_memory.get(known) == metadata["resourceVersion"]:
        return None
    if _has_image(pod, UNPULLABLE_IMAGE):
        store.change(PODS, pod, _fail_image_pull)
        return None
    for after, step in _state_changes(pod):
        if (left := _seconds_left(store, pod, "bound", after)) > 0:
            return left
        if store.change(PODS, pod, partial(step, store=store)) is not pod:
            return 0.0
    store.controller_memory[known] = metadata["resourceVersion"]
    return None


def _state_changes(pod: Object) -> list[tuple[float, Callable[..., None]]]:
    """The state changes of a pod, each with its delay after binding."""
    restarts_always = pod["spec"].get("restartPolicy", "Always") == "Always"
    return [
        (START_DELAY_S, _start_containers),
        (READY_DELAY_S, _make_ready),
        *(
            []
            if restarts_always
            else [(SLOW_END_DELAY_S if _has_image(pod, SLOW_IMAGE) else END_DELAY_S, _end_containers)]
        ),
    ]


def _seconds_left(store: ObjectStore, pod: Object, since: str, seconds: float) -> float:
    """Seconds left until this long after the pod was first seen in a state."""
    now = asyncio.get_running_loop().time()
    first: float = store.controller_memory.setdefault(f"{since} {pod['metadata']['uid']}", now)
    return first + seconds - now


def _start_containers(pod: Any, store: ObjectStore) -> None:
    """Starts the containers; restarts those with an image that was changed in place."""
    before = {each["name"]: each for each in pod["status"].get("containerStatuses", ())}
    pod["status"]["phase"] = "Running"
    pod["status"].setdefault("startTime", format_time(store.now()))
    pod["status"]["containerStatuses"] = [_running_status(each, before, store) for each in pod["spec"]["containers"]]
    for each in pod["spec"].get("initContainers", ()):
        ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        state = {"running": {"startedAt": pod["status"]["startTime"]}} if each.get("restartPolicy") else ended
        known = pod["status"].setdefault("initContainerStatuses", [])
        status = {"name": each["name"], "image": each["image"], "imageID": image_id(each["image"]), "ready": True,
                "started": True, "restartCount": 0, "state": state}  # fmt: skip
        same = [index for index, other in enumerate(known) if other["name"] == each["name"]]
        if not same:
            known.append(status)
        elif known[same[0]]["image"] != each["image"]:
            known[same[0]] = {**status, "restartCount": known[same[0]]["restartCount"] + 1}


def _running_status(container: Object, before: dict[str, Any], store: ObjectStore) -> Object:
    known = before.get(container["name"])
    if known and known["image"] == container["image"]:
        return known
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": image_id(container["image"]),
        "containerID": f"containerd://{container['name']}",
        "ready": False,
        "started": True,
        "restartCount": known["restartCount"] + 1 if known else 0,
        "state": {"running": {"startedAt": format_time(store.now())}},
    }


def _make_ready(pod: Any, store: ObjectStore) -> None:
    for each in pod["status"]["containerStatuses"]:
        each["ready"] = True
    for gate in pod["spec"].get("readinessGates", ()):
        _set_condition(pod, gate["conditionType"], "True", store)
    for each in ("Initialized", "ContainersReady", "Ready"):
        _set_condition(pod, each, "True", store)


def _end_containers(pod: Any, store: ObjectStore) -> None:
    code = 1 if _has_image(pod, FAILING_IMAGE) else 0
    for each in pod["status"]["containerStatuses"]:
        terminated = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "finishedAt": format_time(store.now()),
        }
        each |= {"ready": False, "started": False, "state": {"terminated": terminated}}
    for each in ("ContainersReady", "Ready"):
        _set_condition(pod, each, "False", store, "PodCompleted")
    pod["status"]["phase"] = "Failed" if code else "Succeeded"


def _fail_image_pull(pod: Any) -> None:
    pod["status"]["containerStatuses"] = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": False,
            "started": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": f"Back-off pulling image {each['image']}"}},
        }
        for each in pod["spec"]["containers"]
    ]


def _has_image(pod: Object, word: str) -> bool:
    return any(word in each["image"] for each in pod["spec"]["containers"])


def image_id(image: str) -> str:
    return f"{image.rpartition(':')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _has_condition(pod: Object, type_: str) -> bool:
    return any(each["type"] == type_ and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def _set_condition(pod: Any, type_: str, status: str, store: ObjectStore, reason: str = "") -> None:
    conditions = pod["status"].setdefault("conditions", [])
    before = next((each for each in conditions if each["type"] == type_), None)
    if before and before["status"] == status:
        return
    condition = {"type": type_, "status": status, "lastTransitionTime": format_time(store.now())}
    condition |= {"reason": reason} if reason else {}
    pod["status"]["conditions"] = [*(each for each in conditions if each is not before), condition]
