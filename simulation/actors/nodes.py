"""Nodes: a pod is given one, its containers start there, answer, end, and go when they are told to."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from pincompute.kube.resource import NODES, PODS, Object
from pincompute.objects.times import stamp
from simulation.actors.pods import phase
from simulation.store import Store

STARTS, ANSWERS, ENDS, LEAVES = 0.5, 1.0, 2.0, 0.5
"""Seconds until the containers of a pod run, answer, are done (where they end by themselves), and are gone."""
BROKEN = "broken"
"""In the name of an image: it cannot be had."""
FAILING = "failing"
"""In the name of an image: its program ends badly."""
SLOW, ENDS_LATE = "slow", 85.0
"""In the name of an image: its program takes so many seconds."""


def schedule(store: Store) -> None:
    nodes = [each["metadata"]["name"] for each in store.all(NODES)]
    for pod in store.all(PODS):
        if pod["spec"].get("nodeName") and not _says(pod, "PodScheduled"):
            store.change(PODS, pod, lambda each: _say(each, "PodScheduled", "True", store))
        elif not pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
            store.change(PODS, pod, lambda each: _say(each, "PodScheduled", "False", store, "SchedulingGated"))
        elif not pod["spec"].get("nodeName"):
            load = dict.fromkeys(nodes, 0)
            for each in store.all(PODS):
                if each["spec"].get("nodeName") in load:
                    load[each["spec"]["nodeName"]] += 1
            node = min(load, key=lambda name: (load[name], name))
            store.change(PODS, pod, partial(_place, node=node, store=store))


def _place(pod: Any, *, node: str, store: Store) -> None:
    pod["spec"]["nodeName"] = node
    _say(pod, "PodScheduled", "True", store)


def run(store: Store) -> float | None:
    """The next thing that time will bring, for all pods."""
    waits = [_run(store, each) for each in store.all(PODS) if each["spec"].get("nodeName")]
    return min((each for each in waits if each is not None), default=None)


def _run(store: Store, pod: Object) -> float | None:
    metadata = pod["metadata"]
    if metadata.get("deletionTimestamp"):
        left = _left(store, pod, "told", LEAVES)
        if left <= 0:
            store.remove(PODS, pod)
        return left if left > 0 else None
    known = f"done {metadata['uid']}"
    if phase(pod) in {"Succeeded", "Failed"} or store.memory.get(known) == metadata["resourceVersion"]:
        return None
    if _image(pod, BROKEN):
        store.change(PODS, pod, _stuck)
        return None
    for after, step in _steps(pod):
        if (left := _left(store, pod, "bound", after)) > 0:
            return left
        if store.change(PODS, pod, partial(step, store=store)) is not pod:
            return 0.0
    store.memory[known] = metadata["resourceVersion"]
    return None


def _steps(pod: Object) -> list[tuple[float, Callable[..., None]]]:
    """What becomes of it, each after so many seconds."""
    lasts = pod["spec"].get("restartPolicy", "Always") == "Always"
    return [
        (STARTS, _start),
        (ANSWERS, _answer),
        *([] if lasts else [(ENDS_LATE if _image(pod, SLOW) else ENDS, _end)]),
    ]


def _left(store: Store, pod: Object, since: str, seconds: float) -> float:
    """Until so many seconds are over since it was first seen so."""
    now = asyncio.get_running_loop().time()
    first: float = store.memory.setdefault(f"{since} {pod['metadata']['uid']}", now)
    return first + seconds - now


def _start(pod: Any, store: Store) -> None:
    """Also again, where the image of a container was changed in place."""
    before = {each["name"]: each for each in pod["status"].get("containerStatuses", ())}
    pod["status"]["phase"] = "Running"
    pod["status"].setdefault("startTime", stamp(store.now()))
    pod["status"]["containerStatuses"] = [_started(each, before, store) for each in pod["spec"]["containers"]]
    for each in pod["spec"].get("initContainers", ()):
        ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        state = {"running": {"startedAt": pod["status"]["startTime"]}} if each.get("restartPolicy") else ended
        known = pod["status"].setdefault("initContainerStatuses", [])
        said = {"name": each["name"], "image": each["image"], "imageID": image_id(each["image"]), "ready": True,
                "started": True, "restartCount": 0, "state": state}  # fmt: skip
        same = [index for index, other in enumerate(known) if other["name"] == each["name"]]
        if not same:
            known.append(said)
        elif known[same[0]]["image"] != each["image"]:
            known[same[0]] = {**said, "restartCount": known[same[0]]["restartCount"] + 1}


def _started(container: Object, before: dict[str, Any], store: Store) -> Object:
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
        "state": {"running": {"startedAt": stamp(store.now())}},
    }


def _answer(pod: Any, store: Store) -> None:
    for each in pod["status"]["containerStatuses"]:
        each["ready"] = True
    for gate in pod["spec"].get("readinessGates", ()):
        _say(pod, gate["conditionType"], "True", store)
    for each in ("Initialized", "ContainersReady", "Ready"):
        _say(pod, each, "True", store)


def _end(pod: Any, store: Store) -> None:
    code = 1 if _image(pod, FAILING) else 0
    for each in pod["status"]["containerStatuses"]:
        said = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": stamp(store.now())}
        each |= {"ready": False, "started": False, "state": {"terminated": said}}
    for each in ("ContainersReady", "Ready"):
        _say(pod, each, "False", store, "PodCompleted")
    pod["status"]["phase"] = "Failed" if code else "Succeeded"


def _stuck(pod: Any) -> None:
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


def _image(pod: Object, word: str) -> bool:
    return any(word in each["image"] for each in pod["spec"]["containers"])


def image_id(image: str) -> str:
    return f"{image.rpartition(':')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _says(pod: Object, type_: str) -> bool:
    return any(each["type"] == type_ and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def _say(pod: Any, type_: str, status: str, store: Store, reason: str = "") -> None:
    conditions = pod["status"].setdefault("conditions", [])
    before = next((each for each in conditions if each["type"] == type_), None)
    if before and before["status"] == status:
        return
    said = {"type": type_, "status": status, "lastTransitionTime": stamp(store.now())}
    said |= {"reason": reason} if reason else {}
    pod["status"]["conditions"] = [*(each for each in conditions if each is not before), said]
