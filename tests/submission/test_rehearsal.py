"""What a cluster would refuse of natives is told before anything is written, with its own words and all at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from string import Template

import pytest
import yaml

from control_plane import ControlPlane
from pincompute.api.admission import admit_all
from pincompute.api.documents import read
from pincompute.api.names import DESK, ENGINE
from pincompute.api.preview import Preview
from pincompute.base.clock import SystemClock
from pincompute.controller.resources import NATIVES, NOUNS
from pincompute.controller.workloads import Workloads
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden
from pincompute.kube.resource import (
    ADMISSION_BINDINGS,
    ADMISSION_POLICIES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    Object,
)
from rights import granted
from workloads import HELLO, cluster, new_project

pytestmark = pytest.mark.cluster

MASTERS = "system:masters"
MANIFEST = MANIFESTS / "rehearsal.yaml"
LABELLED = HELLO.replace("port: 8080", "port: 8080, template: {metadata: {labels: {a: bad}}}")


@asynccontextmanager
async def stranger(client: Client, project: str, name: str) -> AsyncGenerator[None]:
    """Somebody's own policy: no pods of Deployments are labelled `a: bad`, and no Service is hello, in one project."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
        for group, resource in (("", "services"), ("apps", "deployments"))
    ]
    good = "object.kind == 'Service' ? object.metadata.name != 'hello' : "
    good += "object.spec.template.metadata.?labels.?a.orValue('') != 'bad'"
    spec: Object = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": good}]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": project}}}
    binding: Object = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    await client.create(ADMISSION_POLICIES, {"metadata": {"name": name}, "spec": spec}, manager="stranger")
    await client.create(ADMISSION_BINDINGS, {"metadata": {"name": name}, "spec": binding}, manager="stranger")
    pod = {"metadata": {"labels": {"a": "bad"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    body = {"selector": {"matchLabels": {"a": "bad"}}, "template": pod}
    tried = {"metadata": {"name": "tried", "namespace": project}, "spec": body}
    try:
        async with asyncio.timeout(60):
            # An API server goes by a policy a moment after it was written.
            while True:
                if not await _passes(client, tried):
                    break
                await asyncio.sleep(0.05)
        yield
    finally:
        await client.delete(ADMISSION_BINDINGS, name)
        await client.delete(ADMISSION_POLICIES, name)


async def _passes(client: Client, deployment: Object) -> bool:
    try:
        await client.create(DEPLOYMENTS, deployment, manager="stranger", dry_run=True)
    except ApiError:
        return False
    return True


async def planned(workloads: Workloads, project: str, text: str = LABELLED) -> Preview:
    (preview,) = await workloads.preview(admit_all(read(text), project), SystemClock().now())
    return preview


async def test_what_a_cluster_refuses_is_told_before_anything_is_written(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        async with stranger(client, project, f"no-{project}"):
            workloads = Workloads(client)
            preview = await planned(workloads, project)
            # All at once, each by the policy's own name.
            assert sorted(each["where"]["object"] for each in preview.refused) == [
                f"Deployment/hello of {project}", f"Service/hello of {project}",
            ]  # fmt: skip
            assert all(f"ValidatingAdmissionPolicy 'no-{project}'" in each["detail"] for each in preview.refused)
            assert {each["reason"] for each in preview.refused} == {"ClusterRefused"}
            assert len(preview.changes) > 3
            # What was said is not asked again.
            before = _creates(client)
            assert (await planned(workloads, project)).refused == preview.refused
            assert _creates(client) == before > 0
            # Of what keeps to it nothing is said.
            assert (await planned(workloads, project, HELLO.replace("name: hello", "name: fine"))).refused == []
            for resource in (DEPLOYMENTS, SERVICES, NOUNS["PinterestService"]):
                assert (await client.list(resource, project)).items == []


async def test_the_desk_may_ask_and_make_nothing(plane: ControlPlane) -> None:
    """Whatever else it may: a policy of ours holds it to dry runs."""
    async with cluster(plane) as client, Client(plane.access(DESK, (MASTERS,)), agent="tests") as desk:
        project = await new_project(client)
        natives = (await planned(Workloads(client), project, HELLO)).natives
        for native in natives:
            native["metadata"].pop("ownerReferences")
        resources = {each.kind: each for each in (ADMISSION_POLICIES, ADMISSION_BINDINGS)}
        policies = list(yaml.safe_load_all(Template(MANIFEST.read_text()).substitute(desk=[DESK])))
        for each in policies:
            await client.apply(each, resources[each["kind"]], manager=ENGINE)
        tried = CONFIG_MAPS, {"metadata": {"name": "tried", "namespace": project}}
        async with asyncio.timeout(60):
            while True:
                try:
                    await desk.create(*tried, manager=DESK)
                except Forbidden:
                    break
                # An API server goes by a policy a moment after it was written.
                await client.delete(CONFIG_MAPS, "tried", project)
        for native in natives:
            resource = NATIVES[native["kind"]]
            with pytest.raises(Forbidden, match="was no dry run"):
                await desk.create(resource, native, manager=DESK)
            await desk.create(resource, native, manager=DESK, dry_run=True)
            await client.create(resource, native, manager=ENGINE)
        for each in reversed(policies):
            await client.delete(resources[each["kind"]], each["metadata"]["name"])


def test_what_the_desk_may_ask_is_what_is_held_to_dry_runs() -> None:
    """And it is what workloads become."""
    policy = next(yaml.safe_load_all(Template(MANIFEST.read_text()).substitute(desk=[DESK])))
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    held = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    natives = {(each.group, each.plural) for each in NATIVES.values()}
    may = {(each.group, each.resource) for each in granted({DESK}) if each.verb == "create"}
    assert held == natives == may & natives


def _creates(client: Client) -> int:
    return sum(count for asked, count in client.traffic.requests.items() if asked.verb == "create")
