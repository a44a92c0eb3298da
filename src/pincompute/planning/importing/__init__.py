"""An existing Deployment as a short file: what it says, and all that would be otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple, cast

from pincompute.api.admission import admit
from pincompute.api.documents import Document
from pincompute.api.names import API_VERSION, WORKLOAD
from pincompute.api.service import PinterestService
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, identity
from pincompute.objects.owners import controller_uid
from pincompute.planning import service
from pincompute.planning.importing import effect, traffic
from pincompute.planning.importing.effect import Files
from pincompute.planning.importing.form import is_ours, spoken
from pincompute.planning.importing.found import Found, files_of, named
from pincompute.planning.importing.traffic import Traffic
from pincompute.planning.people.preview import LAPTOP, first
from pincompute.planning.snapshot import Snapshot

ORDER = (
    "image",
    "command",
    "arguments",
    "port",
    "ports",
    "replicas",
    "environment",
    "configuration",
    "configurationPath",
    "cpu",
    "memory",
    "gpus",
    "tier",
    "loadBalancer",
    "rollout",
    "unavailable",
    "shutdown",
    "template",
)
"""As people read a file: what runs, then where it answers, then the rest."""


class Imported(NamedTuple):
    document: Object
    workload: PinterestService
    differs: tuple[str, ...] = ()
    """What would be otherwise once its copies are made anew, each with what was and what would be."""
    lost: tuple[Problem, ...] = ()
    """What somebody would miss at once: with any of it, nothing is taken over."""
    beside: tuple[str, ...] = ()
    """What stays as it is: what goes on leading to its copies, and files that it has itself by now."""
    taken: tuple[Object, ...] = ()
    """What becomes the workload's, the Deployment first."""
    new: tuple[str, ...] = ()
    """What is made beside."""


def imported(found: Found, name: str = "", port: int = 0) -> Imported:
    """Refused where no file could say it; what could not be carried is told, all of it."""
    name = name or found.name
    seen = traffic.of(found, name, port)
    refuse_all(_obstacles(found, seen))
    files: Files = {each["metadata"]["name"]: each for each in found.files}
    spec = {**spoken(found.template, name, seen, files), **_running(found)}
    document: Object = {
        "apiVersion": API_VERSION,
        "kind": PinterestService.__name__,
        "metadata": {"name": name, "project": found.namespace},
        "spec": {field: spec[field] for field in ORDER if spec.get(field) not in (None, "", [], {})},
    }
    workload = cast("PinterestService", admit(Document(document, "", {}), found.namespace))
    wanted = _wanted(workload)
    taken = _taken(found, seen, name)
    there = {identity(each) for each in taken}
    return Imported(
        document,
        workload,
        tuple(_differences(found, wanted, files)),
        tuple(_losses(found, seen, wanted)),
        (*traffic.beside(found, seen), *_copied(found, wanted["Deployment"])),
        taken,
        tuple(identity(each) for each in wanted.values() if identity(each) not in there),
    )


def _obstacles(found: Found, seen: Traffic) -> Iterator[Problem]:
    where = Where(object=f"{found.namespace}/{found.name}")
    if WORKLOAD in found.deployment["metadata"].get("labels", {}) and controller_uid(found.deployment):
        what = f"Deployment/{found.name} is what a workload became"
        yield Problem(CANNOT_IMPORT, what, where, next=f"pin show {found.name} --project {found.namespace}")
    elif not seen.port:
        what = f"nothing says on which port Deployment/{found.name} listens"
        note = "a Service that leads to it would, or a port of a container"
        yield Problem(CANNOT_IMPORT, what, where, note, f"pin import deployment/{found.name} --port 8080")


def _running(found: Found) -> Object:
    """How many copies, and how they are replaced; Kubernetes' own way of it is nobody's word."""
    spec = found.deployment["spec"]
    rolling = spec.get("strategy", {}).get("rollingUpdate") or {}
    said = {
        "surge": rolling.get("maxSurge", _USUAL),
        "unavailable": rolling.get("maxUnavailable", _USUAL),
    }
    rollout: Object = {} if set(said.values()) == {_USUAL} else {k: v for k, v in said.items() if v != _OURS[k]}
    deadline = spec.get("progressDeadlineSeconds", 600)
    if spec.get("minReadySeconds"):
        rollout["minReadySeconds"] = spec["minReadySeconds"]
    if deadline != 600 and 10 <= deadline <= 86_400:
        rollout["deadlineSeconds"] = deadline
    replicas = spec.get("replicas", 1)
    budget = next((each["spec"].get("maxUnavailable") for each in found.budgets), None)
    return {
        "replicas": replicas if replicas != 1 else None,
        "rollout": rollout,
        "unavailable": None if budget == _USUAL else budget,
    }


_USUAL = "25%"
_OURS = {"surge": "25%", "unavailable": 0}


def _wanted(workload: PinterestService) -> dict[str, Object]:
    """Each native that it would become, by its kind; records and files are not looked at."""
    when = datetime(1970, 1, 1, tzinfo=UTC)
    plan = service.plan(Snapshot(first(workload), (), (), LAPTOP, when))
    refuse_all(plan.problems)
    return {each["kind"]: each for each in plan.wanted if each["kind"] != "ConfigMap"} | {
        identity(each): each for each in plan.wanted if each["kind"] == "ConfigMap" and "spec.json" not in each["data"]
    }


def _copied(found: Found, deployment: Object) -> Iterator[str]:
    """What the file holds by now itself: it stays, and copies of the workload's do not read it."""
    still = set(files_of(deployment["spec"]["template"]))
    return (identity(each) for each in found.files if each["metadata"]["name"] not in still)


def _taken(found: Found, seen: Traffic, name: str) -> tuple[Object, ...]:
    account = named(found.accounts, name)
    some = (found.deployment, seen.service, seen.ingress, account, *found.budgets)
    return tuple(each for each in some if each)


def _differences(found: Found, wanted: dict[str, Object], files: Files) -> Iterator[str]:
    deployment = wanted["Deployment"]
    made = {each["metadata"]["name"]: each for each in wanted.values() if each["kind"] == "ConfigMap"}
    before = effect.of_template(found.template, files)
    after = effect.of_template(deployment["spec"]["template"], {**files, **made})
    yield from effect.differences(before, _without_ours(before, after))
    yield from effect.differences(_rolled(found.deployment), _rolled(deployment))
    lost = found.deployment["metadata"].get("labels", {})
    if lost:
        told = ", ".join(f"{each}={lost[each]}" for each in sorted(lost))
        yield f"labels of the Deployment itself: {told} -> none"
    if found.budgets:
        yield from effect.differences(_budget(found.budgets[0]), _budget(wanted["PodDisruptionBudget"]))


def _without_ours(before: Object, after: Object) -> Object:
    """Each container is told where it is; it matters where that takes the place of a variable of its own."""
    groups = ("containers", "initContainers")
    theirs = {(each["name"], one["name"]) for group in groups for each in before[group] for one in each["env"]}
    return {**after, **{group: [_untold(each, theirs) for each in after[group]] for group in groups}}


def _untold(container: Object, theirs: set[tuple[str, str]]) -> Object:
    env = [
        each for each in container["env"] if (container["name"], each["name"]) in theirs or not is_ours(each["name"])
    ]
    return {**container, "env": env}


def _rolled(deployment: Object) -> Object:
    spec = deployment["spec"]
    strategy = spec.get("strategy", {})
    usual = {"maxSurge": _USUAL, "maxUnavailable": _USUAL} if strategy.get("type") != "Recreate" else {}
    return {
        "replicas": spec.get("replicas", 1),
        "rollout": {**usual, **(strategy.get("rollingUpdate") or {})},
        "minReadySeconds": spec.get("minReadySeconds", 0),
        "progressDeadlineSeconds": spec.get("progressDeadlineSeconds", 600),
    }


def _budget(budget: Object) -> Object:
    said = {field: each for field, each in budget["spec"].items() if field in {"maxUnavailable", "minAvailable"}}
    return {"budget": said}


def _losses(found: Found, seen: Traffic, wanted: dict[str, Object]) -> Iterator[Problem]:
    where = Where(object=f"{found.namespace}/{found.name}")
    if found.deployment["spec"].get("strategy", {}).get("type") == "Recreate":
        what = "no copy of the old making may run beside one of the new, and ours do"
        yield Problem(CANNOT_IMPORT, what, where, "strategy: Recreate -> RollingUpdate", "change it there first")
    for each in found.scalers:
        what = f"{identity(each)} changes the number of copies, and ours is the file's"
        next_ = f"kubectl delete hpa {each['metadata']['name']} --namespace {found.namespace}"
        yield Problem(CANNOT_IMPORT, what, where, next=next_)
    if seen.service:
        before = traffic.of_service(seen.service, found.template)
        after = traffic.of_service(wanted["Service"], wanted["Deployment"]["spec"]["template"])
        for told in effect.differences(before, after):
            next_ = f"--as OTHER: {identity(seen.service)} then stays as it is, beside the workload"
            yield Problem(CANNOT_IMPORT, f"{identity(seen.service)} cannot be carried whole", where, told, next_)


__all__ = ["Found", "Imported", "imported"]
