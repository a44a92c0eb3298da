"""What a PinterestService becomes: a Deployment that runs it, a Service and an Ingress that lead to it."""

from __future__ import annotations

from pincompute.api.names import TEMPLATE, WORKLOAD
from pincompute.api.service import PinterestService
from pincompute.api.workload import Condition, Progress, Status
from pincompute.base.problem import Problem
from pincompute.base.reasons import AVAILABLE, PROGRESSING
from pincompute.objects.content import Object
from pincompute.objects.times import stamp
from pincompute.planning.natives import deployment, host, ingress, service, simulated
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Cluster, Pod, Snapshot, condition
from pincompute.planning.why import Finding, first_cause


def plan(snapshot: Snapshot) -> Plan:
    """The one signature; planning the same snapshot twice gives the same plan."""
    owner, cluster = snapshot.owner, snapshot.cluster
    wanted = natives(owner, cluster)
    newest = _template_digest(wanted)
    pods = tuple(pod for pod in snapshot.pods if pod.workload == owner.metadata.name and _lives(pod))
    current = tuple(pod for pod in pods if pod.template == newest)
    progress = _progress(owner.spec.replicas, current)
    finding = Finding() if progress.ready == progress.wanted else first_cause(owner, current, snapshot.now)
    status = Status(
        observed_generation=owner.metadata.generation,
        revision=owner.metadata.generation,
        address=address(owner, cluster),
        replicas=len(pods),
        ready_replicas=sum(pod.ready for pod in pods),
        selector=f"{WORKLOAD}={owner.metadata.name}",
        simulated=simulated(owner, cluster),
        next=finding.problem.next if finding.problem else "",
        progress=progress,
        conditions=[_available(snapshot, progress, finding.problem)],
    )
    return Plan(wanted, status, finding.look_again, finding.problem)


def natives(owner: PinterestService, cluster: Cluster) -> tuple[Object, ...]:
    """Everything that one service is made of, in the order in which it is made."""
    return (service(owner), deployment(owner, cluster), ingress(owner, cluster))


def address(owner: PinterestService, cluster: Cluster) -> str:
    port = "" if cluster.port == 80 else f":{cluster.port}"
    return f"http://{host(owner, cluster)}{port}"


def _template_digest(wanted: tuple[Object, ...]) -> str:
    (digest,) = [
        each["spec"]["template"]["metadata"]["labels"][TEMPLATE] for each in wanted if each["kind"] == "Deployment"
    ]
    return str(digest)


def _lives(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp and pod.status.phase not in {"Failed", "Succeeded"}


def _progress(wanted: int, pods: tuple[Pod, ...]) -> Progress:
    return Progress(
        wanted=wanted,
        scheduled=sum(pod.says("PodScheduled") for pod in pods),
        started=sum(any(each.state.running for each in pod.status.container_statuses) for pod in pods),
        ready=sum(pod.ready for pod in pods),
    )


def _available(snapshot: Snapshot, progress: Progress, why: Problem | None) -> Condition:
    owner = snapshot.owner
    done = progress.ready == progress.wanted
    if done:
        reason, message = AVAILABLE, f"{progress.ready} of {progress.wanted} copies answer"
    elif why:
        reason, message = why.reason, why.message()
    else:
        reason, message = PROGRESSING, f"{progress.ready} of {progress.wanted} copies answer so far"
    status = "True" if done else "False"
    before = condition(owner.status.conditions, "Available")
    same = before is not None and before.status == status
    since = before.last_transition_time if before and same else stamp(snapshot.now)
    return Condition(
        type="Available",
        status=status,
        reason=reason.code,
        message=message,
        last_transition_time=since,
        observed_generation=owner.metadata.generation,
    )
