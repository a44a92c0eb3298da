"""Plays one case: sets it up, asks `pin why`, does what the answer says to type, and cleans up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from bench.fault_catalogue import KIND_SPECS, TargetCluster
from bench.why.corpus import Case, Fault, PodState, Step
from bench.why.kubelet import FAULT_LABEL, OS_LABEL, SCRIPTED_LABEL, Key, ScriptedKubelet, nodes_of
from bench.why.objects import OTHER_CLIENT, RESOURCES, whole_object, with_names
from bench.why.typist import type_next
from pincompute.api.change import Change
from pincompute.api.workload_detail import Diagnosis
from pincompute.base.problem import Refused
from pincompute.base.reasons import OPERATOR_NOT_RESPONDING
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.errors import ApiError, Conflict, NotFound
from pincompute.kube.resource import PODS, Object, Resource

PATIENCE_S = 100.0
"""Time for an answer. Most take the time after which a wait counts as a fault: 15, 30 or 60 s."""
SETTLED_S = 25.0
"""Time for which a wrong problem must stand to count as the answer."""
CURE_PATIENCE_S = 90.0
"""Time for which a problem may stand after a step."""
PROGRESS_PATIENCE_S = 180.0
"""Time for a workload without a problem to be done: a daemon is updated in waves."""
STEP_SETTLED_S = 12.0
"""Time for which another answer must stand after a step until it is typed."""
MAX_TYPED_STEPS = 3
HEALTHY_WATCH_S = 25.0
"""Time for which a state that is not done, such as a rollout that waits, is asked about."""
_POLL_S = 3.0
_QUOTA_ATTEMPTS = 5
_KINDS = {each.removeprefix("Pinterest").lower(): each for each in KIND_SPECS}
_KIND_NAMES = {"set": "statefulset", "batch": "jobset", "cron": "cronjob", "training": "trainingjob"}


class Answer(NamedTuple):
    case: Case
    diagnosis: Diagnosis | None
    """None if no answer reported a problem."""
    seconds: float
    """From the fault to the first answer with that reason."""
    wavered: bool = False
    """Another problem was reported before."""
    cured: bool = False
    error: str = ""
    """The case could not be set up."""

    @property
    def fault(self) -> Fault:
        assert isinstance(self.case.script, Fault)
        return self.case.script

    @property
    def named(self) -> bool:
        return self.diagnosis is not None and self.diagnosis.reason == self.fault.reason

    @property
    def exact(self) -> bool:
        """It is named, and the cause is told by its name or number."""
        found = self.diagnosis
        told = f"{found.what}\n{found.note}\n{found.where}" if found else ""
        return self.named and with_names(self.fault.tells, self.case.name, "") in told

    @property
    def text(self) -> str:
        found = self.diagnosis
        wanted = (
            f"wanted {self.fault.reason} {self.fault.tells}".rstrip() if isinstance(self.case.script, Fault) else ""
        )
        told = f"{found.reason}: {found.what}\n{found.note}\nnext: {found.next}" if found else self.error or "nothing"
        return f"{self.case.class_}/{self.case.name}: {wanted}; told {told}"


def workload_fields(case: Case, project: str) -> dict[str, Any]:
    """The fields of the case's file: those of a healthy workload of the kind, with its differences."""
    script = case.script
    kind = _KINDS[_KIND_NAMES.get(script.kind, script.kind)]
    pods = script.pods
    if not script.nodes and (script.pod or any(each.pod for each in script.then)):
        pods = {**pods, "nodeSelector": {SCRIPTED_LABEL: "true", **pods.get("nodeSelector", {})}}
    if script.nodes and "nodeSelector" not in script.pods:
        pods = {**pods, "nodeSelector": {FAULT_LABEL: "$NAME"}}
    # The nodes of single faults lack this label, so that no other workload runs there.
    pods = {"nodeSelector": {OS_LABEL: "linux"}, **pods}
    given = {**KIND_SPECS[kind], **script.file, "template": pods}
    return with_names({field: value for field, value in given.items() if value is not None}, case.name, project)


class Scene:
    """One case on the cluster."""

    def __init__(self, cluster: TargetCluster, kubelet: ScriptedKubelet, case: Case) -> None:
        own = case.script.project is not None
        self.cluster = cluster._replace(project=f"p-{case.name}") if own else cluster
        self.kubelet = kubelet
        self.case = case
        self.name = case.name
        self.spec = workload_fields(case, self.cluster.project)
        self._stopped = 0
        """Process of a part of the platform, which goes on at the end."""
        self._created: list[tuple[str, str]] = []

    @property
    def key(self) -> Key:
        return Key(self.cluster.project, self.name)

    def _own(self, content: Any) -> Any:
        return with_names(content, self.name, self.cluster.project)

    def _own_state(self, state: PodState) -> PodState:
        return msgspec.convert(self._own(msgspec.to_builtins(state)), PodState)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Objects and nodes of the case; all are deleted at the end."""
        try:
            if self.case.script.project is not None:
                await self._create_project(self.case.script.project)
            for name, state in nodes_of(self.name, self.case.script.nodes):
                await self.kubelet.add_node(name, state)
            for given in self.case.script.objects:
                await self.create(given)
            yield
        finally:
            await self._clean_up()

    async def _create_project(self, spec: dict[str, Any]) -> None:
        quota = {"on-demand": {}, "reserved": {}, "preemptible": {}}
        whole = {"owner": "ann", "review": "open", "quota": quota, **spec}
        name = self.cluster.project
        body = {"metadata": {"name": name}, "spec": whole}
        await self.cluster.client.apply(body, CUSTOM_RESOURCES["Project"], manager=OTHER_CLIENT)
        async with asyncio.timeout(PATIENCE_S):
            async for found in self.cluster.client.follow(CUSTOM_RESOURCES["Project"], name):
                conditions = found.get("status", {}).get("conditions", ())
                if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
                    return

    async def create(self, given: dict[str, Any]) -> None:
        resource, body = whole_object(self._own(given), self.cluster.project)
        created = await self._create_beside_others(resource, body)
        self._created.append((resource.kind, created["metadata"]["name"]))
        if "status" in body:
            status = {"status": body["status"]}
            namespace = self.cluster.project if resource.namespaced else ""
            await self.cluster.client.patch(
                resource, body["metadata"]["name"], namespace, status,
                style="merge", manager=OTHER_CLIENT, subresource="status",
            )  # fmt: skip

    async def _create_beside_others(self, resource: Resource, body: Object) -> Object:
        """Tries again if another case has updated the usage of the same quota at the same time."""
        for _ in range(_QUOTA_ATTEMPTS):
            with suppress(Conflict):
                return await self.cluster.client.create(resource, body, manager=OTHER_CLIENT)
        return await self.cluster.client.create(resource, body, manager=OTHER_CLIENT)

    async def _clean_up(self) -> None:
        client, project = self.cluster.client, self.cluster.project
        if self._stopped:
            os.kill(self._stopped, signal.SIGCONT)
        with suppress(ApiError, Refused):
            await self.cluster.workloads.delete(project, self.name)
        for kind, name in reversed(self._created):
            resource = RESOURCES[kind]
            namespace = project if resource.namespaced else ""
            with suppress(ApiError):
                await client.patch(resource, name, namespace, {"metadata": {"finalizers": None}},
                                   style="merge", manager=OTHER_CLIENT)  # fmt: skip
                await client.delete(resource, name, namespace)
        await self._wait_without_pods()
        self.kubelet.forget(self.key)
        for name, _ in nodes_of(self.name, self.case.script.nodes):
            await self.kubelet.remove_node(name)
        if self.case.script.project is not None:
            with suppress(ApiError):
                await client.delete(CUSTOM_RESOURCES["Project"], project)

    async def _wait_without_pods(self) -> None:
        """Ends the pods of lost nodes and those with finalizers, which would stay."""
        client, project = self.cluster.client, self.cluster.project
        for pod in (await client.list(PODS, project, labels=f"pinterest.com/workload={self.name}")).items:
            name = pod["metadata"]["name"]
            with suppress(ApiError):
                if pod["metadata"].get("finalizers"):
                    await client.patch(PODS, name, project, {"metadata": {"finalizers": None}},
                                       style="merge", manager=OTHER_CLIENT)  # fmt: skip
                await client.raw("DELETE", PODS.path(project, name), query={"gracePeriodSeconds": "0"})

    async def cause(self) -> int:
        """Writes the workload, healthy first if steps follow; returns the generation that the answer is about."""
        script = self.case.script
        if isinstance(script, Fault) and script.stops:
            await self._stop(script.stops)
        if script.pod:
            self.kubelet.play(self.key, self._own_state(script.pod), everywhere=True)
        written = await self.cluster.write(self.name, **self.spec)
        generation = written.generation
        if script.then and (script.pod is None or isinstance(script, Fault)):
            await self.cluster.wait_for_diagnosis(self.name, generation, wrong=False)
        for step in script.then:
            generation = await self._take(step) or generation
        return generation

    async def _stop(self, part: str) -> None:
        _, output = await self.cluster.pin("status", "-o", "json")
        self._stopped = next(each["pid"] for each in json.loads(output)["parts"] if each["name"] == part)
        os.kill(self._stopped, signal.SIGSTOP)

    async def _take(self, step: Step) -> int:
        if step.pod is not None:
            edits = any(each.edit for each in self.case.script.then)
            self.kubelet.play(self.key, self._own_state(step.pod), everywhere=not edits)
        elif step.edit is not None:
            edit = self._own(step.edit)
            if "template" in edit:
                edit["template"] = {**self.spec.get("template", {}), **edit["template"]}
            self.spec = {**self.spec, **edit}
            return (await self.cluster.write(self.name, **self.spec)).generation
        elif step.change is not None:
            change = msgspec.convert(step.change, Change)
            return (await self.cluster.change(self.name, change)).generation
        elif step.node is not None:
            await self.kubelet.set_node(f"{self.name}-node-0", step.node)
        elif step.create is not None:
            await self.create(step.create)
        else:
            await self._disturb(step)
        return 0

    async def _disturb(self, step: Step) -> None:
        client, project = self.cluster.client, self.cluster.project
        kind, _, name = self._own(step.patch or step.delete).partition("/")
        resource = RESOURCES[kind]
        namespace = project if resource.namespaced else ""
        names = [name]
        if name == "*":
            found = await client.list(resource, namespace, labels=f"pinterest.com/workload={self.name}")
            names = [each["metadata"]["name"] for each in found.items]
        for each in names:
            if step.patch:
                await client.patch(resource, each, namespace, self._own(step.to), style="merge", manager="kubectl-edit")
            else:
                await client.delete(resource, each, namespace)

    async def why(self) -> Diagnosis | None:
        """The answer, if it reports a problem.

        That the operator is behind counts only where the case stops a part: many cases at once keep it busy.
        """
        found = await self.cluster.why(self.name)
        is_behind = found.reason == OPERATOR_NOT_RESPONDING.code and not self._stopped
        return found if found.is_problem and not is_behind else None


async def run_fault(cluster: TargetCluster, kubelet: ScriptedKubelet, case: Case) -> Answer:
    scene = Scene(cluster, kubelet, case)
    try:
        async with scene.opened():
            await scene.cause()
            answer = await _ask(scene)
            return answer._replace(cured=await _follow(scene, answer)) if answer.named else answer
    except (ApiError, Refused, TimeoutError) as error:
        return Answer(case, None, 0.0, error=f"not set up: {error}"[:500])


async def _ask(scene: Scene) -> Answer:
    """Asks until the accepted reason is told, another problem has stood for some time, or nothing comes."""
    loop = asyncio.get_running_loop()
    began = told_at = loop.time()
    answer = Answer(scene.case, None, PATIENCE_S)
    while (now := loop.time()) - began < PATIENCE_S:
        found = await scene.why()
        if found and (answer.diagnosis is None or answer.diagnosis.reason != found.reason):
            answer = Answer(scene.case, found, now - began, wavered=answer.diagnosis is not None)
            told_at = now
        elif found:
            answer = answer._replace(diagnosis=found)
        if answer.exact or (answer.diagnosis and now - told_at > SETTLED_S):
            break
        await asyncio.sleep(_POLL_S)
    return answer


async def _follow(scene: Scene, answer: Answer) -> bool:
    """Types what the answers say, one after the other, and tells whether the problem is gone.

    A cure may take steps of which an answer knows only the next one, and a second fault appears after the first. What
    was typed before is not typed again.
    """
    found, typed = answer.diagnosis, set[str]()
    while found is not None and len(typed) < MAX_TYPED_STEPS and found.next not in typed:
        typed.add(found.next)
        try:
            if not await type_next(scene, found.next):
                return False
        except (ApiError, Refused) as refused:
            print(f"{scene.name}: the cure is refused: {refused}", flush=True)
            return False
        found = await _wait_for_cure(scene, typed)
    return found is None


async def _wait_for_cure(scene: Scene, typed: set[str]) -> Diagnosis | None:
    """None once the workload is done without a problem; another answer that has stood for a while; or the last one."""
    loop = asyncio.get_running_loop()
    began = since = loop.time()
    other, found = "", None
    while loop.time() - began < (CURE_PATIENCE_S if found else PROGRESS_PATIENCE_S):
        summary = await scene.cluster.workloads.get_summary(scene.cluster.project, scene.name)
        found = await scene.why()
        if summary.done and found is None:
            return None
        next_ = found.next if found else ""
        if next_ != other:
            other, since = next_, loop.time()
        if found and other not in typed and loop.time() - since > STEP_SETTLED_S:
            return found
        await asyncio.sleep(_POLL_S)
    return found or await scene.cluster.why(scene.name)


async def run_healthy(cluster: TargetCluster, kubelet: ScriptedKubelet, case: Case) -> Answer:
    """The first problem that any answer reports while the state is set up, and until it is done or for a while."""
    scene = Scene(cluster, kubelet, case)
    try:
        async with scene.opened():
            asking = asyncio.create_task(scene.cause())
            return await _watch_healthy(scene, asking)
    except (ApiError, Refused, TimeoutError) as error:
        return Answer(case, None, 0.0, error=f"not set up: {error}"[:500])


async def _watch_healthy(scene: Scene, causing: asyncio.Task[int]) -> Answer:
    loop = asyncio.get_running_loop()
    began, until = loop.time(), loop.time() + PATIENCE_S
    found = None
    while loop.time() < until and found is None:
        if causing.done():
            causing.result()
            until = min(until, loop.time() + HEALTHY_WATCH_S) if until - began >= PATIENCE_S else until
        with suppress(NotFound, Refused):
            found = await scene.why()
        await asyncio.sleep(_POLL_S)
    causing.cancel()
    with suppress(asyncio.CancelledError):
        await causing
    return Answer(scene.case, found, loop.time() - began)
