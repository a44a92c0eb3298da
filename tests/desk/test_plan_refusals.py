"""A plan reports what the deploy of the same documents is refused with: every reason, in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.documents import read_documents
from pincompute.api.names import API_VERSION
from pincompute.api.project import Project
from pincompute.base.problem import Refused
from pincompute.base.reasons import SET_REFUSED
from pincompute.cli.cluster_client import ClusterClient
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.desk.document_sets import MAX_DOCUMENTS
from pincompute.kube.resource import Object
from tenant_projects import Believing, tenant_projects, unknown_project
from unwatched_desk import PreviewingPlatform, unwatched_desk
from workloads import HELLO, cluster_client, new_project

MEMBERS = {"owner": {"people": ["olga"]}, "deployer": {"people": ["dan"]}, "viewer": {"people": ["vera"]}}
TWO_REPLICAS = {"name": "two", "rule": "workload.spec.replicas >= 2", "message": "two replicas at least"}
BROKEN = {"name": "broken", "rule": "workload.metadata.labels.team == 'ads'", "message": "it names its team"}
DAEMON = HELLO.replace("Service", "Daemon").replace(", port: 8080", "")


def hello(more: str, name: str = "hello") -> str:
    return HELLO.replace("port: 8080", f"port: 8080, {more}").replace("name: hello", f"name: {name}")


class Refusal(NamedTuple):
    reasons: list[str]
    document: str = HELLO
    spec: Mapping[str, Any] = MappingProxyType({})
    """Fields of the project's spec."""
    caller: str = "dan"
    in_project: bool = True


REFUSALS = {
    "accepted": Refusal([]),
    "viewer": Refusal(["Forbidden"], caller="vera"),
    "daemon of a member": Refusal(["Forbidden"], DAEMON, {"quota": {"on-demand": {}, "infrastructure": {}}}),
    "stranger": Refusal(["ProjectUnknown"], caller="eve"),
    "project missing": Refusal(["ProjectUnknown"], caller="root", in_project=False),
    "image missing": Refusal(["DocumentInvalid"], HELLO.replace('image: "hello:dev", ', "")),
    "unknown kind": Refusal(["KindUnknown"], HELLO.replace("PinterestService", "Pod")),
    "runtime gone": Refusal(["HeldRuntimeMissing"], hello("hold: {runtime: 7, until: 2099-01-01}")),
    "build claimed by a file": Refusal(["OnlyLanded"], hello("build: '1.0'")),
    "unreviewed": Refusal(["OnlyLanded"], spec={"review": "landed"}),
    "policy": Refusal(["PolicyDenied"], spec={"policies": [TWO_REPLICAS]}),
    "invalid policy": Refusal(["PolicyInvalid"], spec={"policies": [BROKEN]}),
    "quota": Refusal(["QuotaTooSmall"], hello("replicas: 3"), {"quota": {"on-demand": {"pods": 3}}}),
    "tier": Refusal(["TierClosed"], hello("tier: reserved")),
    "all at once": Refusal(
        ["OnlyLanded", "PolicyDenied", "PolicyInvalid", "QuotaTooSmall"],
        spec={"review": "landed", "policies": [TWO_REPLICAS, BROKEN], "quota": {"on-demand": {"pods": 0}}},
    ),
    "one of a set": Refusal(
        ["HeldRuntimeMissing", "PolicyDenied"],
        "---\n".join([hello("hold: {runtime: 7, until: 2099-01-01}, replicas: 2", "held"), HELLO]),
        {"policies": [TWO_REPLICAS]},
    ),
    "name twice": Refusal(["NameTaken"], f"{HELLO}---\n{HELLO}"),
    "quota of a set": Refusal(
        ["QuotaTooSmall"],
        "---\n".join(hello("replicas: 1", name) for name in ("a", "b")),
        {"quota": {"on-demand": {"pods": 3}}},
    ),
    "set too large": Refusal(
        ["DocumentInvalid"], "---\n".join(hello("replicas: 1", f"w{each}") for each in range(MAX_DOCUMENTS + 1))
    ),
}
"""By what is wrong with the deploy."""


def problems(answer: Any) -> list[dict[str, Any]]:
    """The problems of a plan or of a refused deploy, without where they are in the text."""
    found = (each for one in answer for each in one["errors"]) if isinstance(answer, list) else answer.get("errors", [])
    return sorted(
        (
            {name: value for name, value in each.items() if name != "where"}
            for each in found
            if each["reason"] != SET_REFUSED.code
        ),
        key=lambda each: (each["reason"], each["detail"]),
    )


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
async def test_plan_reports_the_refusals_of_the_deploy(case: Refusal, tmp_path: Path) -> None:
    spec: Object = {"owner": "team-ads", "review": "open", "quota": {"on-demand": {}}, "members": MEMBERS, **case.spec}
    project = msgspec.convert({"kind": "Project", "metadata": {"name": "ads"}, "spec": spec}, Project)
    name = "ads" if case.in_project else "nowhere"
    headers = {"Authorization": f"Bearer {case.caller}", "Prefer": "respond-async"}
    async with unwatched_desk(tmp_path, project, PreviewingPlatform, Authenticator([Believing()])) as here:
        answers = []
        for path in ("plans", "sets"):
            url = f"/v1/projects/{name}/{path}"
            async with here.http.post(url, data=case.document.encode(), headers=headers) as answer:
                answers.append((answer.status, await answer.json()))
    (_, planned), (status, deployed) = answers
    assert [each["reason"] for each in problems(planned)] == sorted(case.reasons)
    assert (status == 202) is not bool(case.reasons)
    if case.reasons:
        assert problems(planned) == problems(deployed)


@pytest.mark.cluster
async def test_plan_of_a_real_cluster_reports_the_refusals_of_the_deploy(plane: ControlPlane, tmp_path: Path) -> None:
    names = ("viewer", "stranger", "project missing", "build claimed by a file", "tier", "name twice", "accepted")
    async with tenant_projects(plane, tmp_path) as here:
        for name in names:
            case = REFUSALS[name]
            project = here.ads if case.in_project else unknown_project()
            planned, deployed = [
                (await here.request(case.caller, "POST", f"/projects/{project}/{path}", case.document)).body
                for path in ("plans", "sets")
            ]
            assert [each["reason"] for each in problems(planned)] == case.reasons, name
            assert not case.reasons or problems(planned) == problems(deployed), name


@pytest.mark.cluster
async def test_plan_by_kubeconfig_reports_the_refusals_of_the_deploy(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        direct, project = ClusterClient(client), await new_project(client)
        # A value that only the API server refuses, and a project that does not exist.
        label = hello(f"template: {{metadata: {{labels: {{a: {'x' * 64}}}}}}}")
        for text, place in ((HELLO, unknown_project()), (label, project)):
            (preview,) = await direct.plan(text, place)
            with pytest.raises(Refused) as refused:
                await direct.submit_set(read_documents(text), place)
            assert [each.json() for each in refused.value.problems] == preview.errors != []
        (preview,) = await direct.plan(HELLO, project)
        assert preview.errors == []
        new = f"apiVersion: {API_VERSION}\nkind: Project\nmetadata: {{name: {place}-new}}\n"
        spec = "spec: {owner: team-ads, quota: {on-demand: {}}}\n"
        *_, preview = await direct.plan(f"{new}{spec}---\n{HELLO}", f"{place}-new")
        assert preview.errors == []
