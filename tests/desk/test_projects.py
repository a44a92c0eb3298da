"""Projects over HTTP: rights to create, change and delete them, and the record of it."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from pincompute.api.names import API_VERSION
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_UNREACHABLE
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.kube.resource import Object
from tenant_projects import Believing
from unwatched_desk import PreviewingPlatform, UnwatchedDesk, unwatched_desk
from workloads import HELLO

MEMBERS: Object = {"owner": {"people": ["olga"]}, "deployer": {"people": ["dan"]}, "viewer": {"people": ["vera"]}}
SPEC: Object = {"owner": "team-ads", "review": "landed", "quota": {"on-demand": {"pods": 3}}, "members": MEMBERS}
MORE_MEMBERS: Object = {**MEMBERS, "deployer": {"people": ["dan", "eve"]}}


class Answer(NamedTuple):
    status: int
    body: Any

    @property
    def reasons(self) -> list[str]:
        return [each["reason"] for each in self.body["errors"]]


def project_text(spec: Object, name: str = "ads", **metadata: Any) -> str:
    content = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name, **metadata}, "spec": spec}
    return msgspec.json.encode(content).decode()


async def send_as(
    projects_desk: UnwatchedDesk, caller: str, method: str, path: str, body: str = "", *, key: str = ""
) -> Answer:
    headers = {"Authorization": f"Bearer {caller}", "Prefer": "respond-async"}
    headers |= {"Idempotency-Key": key} if key else {}
    async with projects_desk.http.request(
        method, f"/v1{path}", data=io.BytesIO(body.encode()), headers=headers
    ) as answer:
        return Answer(answer.status, await answer.json())


@pytest.fixture
async def projects_desk(tmp_path: Path) -> AsyncGenerator[UnwatchedDesk]:
    """A desk with the project ads, which delivers nothing."""
    metadata = {"name": "ads", "generation": 7, "uid": "1"}
    project = msgspec.convert({"kind": "Project", "metadata": metadata, "spec": SPEC}, Project)
    async with unwatched_desk(tmp_path, project, PreviewingPlatform, Authenticator([Believing()])) as opened:
        yield opened


async def audit_of(projects_desk: UnwatchedDesk) -> list[tuple[str, str, str, str]]:
    page = (await send_as(projects_desk, "vera", "GET", "/projects/ads/audit")).body
    return [(each["caller"], each["act"], each["object"], each["note"]) for each in page["entries"]]


async def test_owner_changes_members_and_the_audit_log_has_both_values(projects_desk: UnwatchedDesk) -> None:
    answer = await send_as(
        projects_desk, "olga", "PUT", "/projects/ads", project_text({**SPEC, "members": MORE_MEMBERS})
    )
    assert answer.status == 202
    assert (answer.body["kind"], answer.body["name"], answer.body["verb"]) == ("Project", "ads", "deploy")
    note = 'spec.members.deployer.people: ["dan"] -> ["dan","eve"]'
    assert await audit_of(projects_desk) == [("olga", "deploy: accepted by the desk", "Project/ads", note)]


async def test_owner_raises_no_quota_by_the_document(projects_desk: UnwatchedDesk) -> None:
    raised = project_text({**SPEC, "quota": {"on-demand": {"pods": 300}}})
    refused = await send_as(projects_desk, "olga", "PUT", "/projects/ads", raised)
    assert (refused.status, refused.reasons) == (403, ["Forbidden"])
    assert "spec.quota.on-demand.pods: 3 -> 300" in refused.body["errors"][0]["note"]
    assert await audit_of(projects_desk) == [("olga", "deploy: refused by the desk", "Project/ads", "Forbidden")]
    assert (await send_as(projects_desk, "root", "PUT", "/projects/ads", raised)).status == 202


async def test_owner_raises_no_quota_together_with_members(projects_desk: UnwatchedDesk) -> None:
    """Nothing of a refused document is applied, so that the allowed part is not either."""
    both = project_text({**SPEC, "members": MORE_MEMBERS, "quota": {"on-demand": {}}})
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads", both)).reasons == ["Forbidden"]
    pending = (await send_as(projects_desk, "root", "GET", "/projects/ads/submissions/submission-1")).body
    assert pending["state"] == "refused"


async def test_document_of_another_name_is_refused(projects_desk: UnwatchedDesk) -> None:
    """The caller is authorized for the project in the path, and the document must be of that one."""
    other = project_text({**SPEC, "quota": {"on-demand": {}}}, "search")
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads", other)).reasons == ["DocumentInvalid"]
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/search", other)).reasons == ["ProjectUnknown"]
    for path in ("/projects/ads/submissions", "/projects/ads/sets"):
        answer = await send_as(projects_desk, "olga", "POST", path, project_text(SPEC))
        assert answer.reasons == ["KindUnknown"]
        assert answer.body["errors"][0]["next"] == "pin deploy FILE, with the file of the Project alone"
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads", HELLO)).reasons == ["KindUnknown"]
    for kind in ("[Project]", "{a: b}", "null"):
        odd = await send_as(projects_desk, "olga", "PUT", "/projects/ads", f"kind: {kind}\n")
        assert odd.status in range(400, 500), odd


async def test_replayed_submission_is_decided_once_and_for_its_caller_only(projects_desk: UnwatchedDesk) -> None:
    change = project_text({**SPEC, "members": MORE_MEMBERS})
    first = await send_as(projects_desk, "olga", "PUT", "/projects/ads", change, key="k")
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads", change, key="k")).body["id"] == first.body[
        "id"
    ]
    other = project_text({**SPEC, "quota": {"on-demand": {}}})
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads", other, key="k")).reasons == [
        "IdempotencyKeyReused"
    ]
    # A key is that of one caller: another one is not answered with the administrator's acceptance.
    granted = await send_as(
        projects_desk, "root", "PUT", "/projects/ads", project_text({**SPEC, "owner": "team-x"}), key="r"
    )
    assert granted.status == 202
    raised = project_text({**SPEC, "owner": "team-x", "quota": {"on-demand": {}}})
    assert (await send_as(projects_desk, "root", "PUT", "/projects/ads", raised, key="q")).status == 202
    assert (await send_as(projects_desk, "dan", "PUT", "/projects/ads", raised, key="q")).reasons == ["Forbidden"]


async def test_former_document_of_an_administrator_is_not_restored_by_an_owner(projects_desk: UnwatchedDesk) -> None:
    """What is accepted and not delivered yet is what the next document is compared with."""
    less = project_text({**SPEC, "quota": {"on-demand": {"pods": 1}}})
    assert (await send_as(projects_desk, "root", "PUT", "/projects/ads", less)).status == 202
    refused = await send_as(projects_desk, "olga", "PUT", "/projects/ads", project_text(SPEC))
    assert refused.reasons == ["Forbidden"]
    assert "spec.quota.on-demand.pods: 1 -> 3" in refused.body["errors"][0]["note"]
    members = project_text({**SPEC, "quota": {"on-demand": {"pods": 1}}, "members": MORE_MEMBERS})
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads", members)).status == 202


async def test_edit_of_a_former_generation_is_refused(projects_desk: UnwatchedDesk) -> None:
    change = project_text({**SPEC, "members": MORE_MEMBERS})
    refused = await send_as(projects_desk, "olga", "PUT", "/projects/ads?generation=6", change)
    assert (refused.status, refused.reasons) == (409, ["Conflict"])
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads?generation=x", change)).reasons == [
        "DocumentInvalid"
    ]
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/ads?generation=7", change)).status == 202


@pytest.mark.parametrize(("caller", "reason"), [("dan", "Forbidden"), ("vera", "Forbidden"), ("eve", "ProjectUnknown")])
async def test_others_change_and_delete_nothing(projects_desk: UnwatchedDesk, caller: str, reason: str) -> None:
    change = project_text({**SPEC, "members": {**MEMBERS, "owner": {"people": ["olga", caller]}}})
    for method in ("PUT", "DELETE"):
        answer = await send_as(projects_desk, caller, method, "/projects/ads", change)
        assert answer.reasons == [reason], method
    assert await audit_of(projects_desk) == []


async def test_stranger_learns_nothing_of_a_project(projects_desk: UnwatchedDesk) -> None:
    """Of an existing project and of a missing one: the same answers."""
    for method, path, body in (
        ("GET", "/document", ""),
        ("GET", "/progress", ""),
        ("PUT", "", project_text(SPEC, "NAME")),
        ("DELETE", "", ""),
        ("POST", "/plans", project_text(SPEC, "NAME")),
    ):
        answers = [
            await send_as(projects_desk, "otto", method, f"/projects/{name}{path}", body.replace("NAME", name))
            for name in ("ads", "none")
        ]
        assert [each.status for each in answers] == [404, 404]
        there, missing = (str(each.body["errors"]) for each in answers)
        assert there.replace("ads", "none") == missing


async def test_administrators_only_create_projects(projects_desk: UnwatchedDesk) -> None:
    created = project_text({"owner": "team-new", "quota": {"on-demand": {}}}, "new")
    assert (await send_as(projects_desk, "olga", "PUT", "/projects/new", created)).reasons == ["ProjectUnknown"]
    assert (await send_as(projects_desk, "root", "PUT", "/projects/new", created)).status == 202


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({**SPEC, "quota": {}}, "spec.quota"),
        ({**SPEC, "members": {"owner": {"people": ["system:admin"]}}}, "spec.members.owner.people.0"),
        ({**SPEC, "policies": [{"name": "x", "rule": "workload.nothing", "message": "m"}]}, "spec.policies.0.rule"),
    ],
)
async def test_invalid_documents_are_refused_with_their_field(
    projects_desk: UnwatchedDesk, spec: Object, field: str
) -> None:
    for caller in ("root", "olga"):
        answer = await send_as(projects_desk, caller, "PUT", "/projects/ads", project_text(spec))
        assert (answer.status, answer.reasons) == (422, ["DocumentInvalid"])
        assert answer.body["errors"][0]["where"]["field"] == field


async def test_document_of_10_mb_is_refused_and_not_recorded(projects_desk: UnwatchedDesk) -> None:
    large = project_text({**SPEC, "contact": "x" * (10 << 20)})
    for caller in ("olga", "root"):
        answer = await send_as(projects_desk, caller, "PUT", "/projects/ads", large)
        assert (answer.status, answer.reasons) == (422, ["DocumentInvalid"])
        assert len(str(answer.body)) < 2_000
    assert await audit_of(projects_desk) == []


async def test_project_with_workloads_is_not_deleted(projects_desk: UnwatchedDesk) -> None:
    hello = HELLO.replace("name: hello", "name: hello, project: ads")
    projects_desk.platform.project = msgspec.structs.replace(
        projects_desk.platform.project, spec=msgspec.structs.replace(projects_desk.platform.project.spec, review="open")
    )
    assert (await send_as(projects_desk, "dan", "POST", "/projects/ads/submissions", hello)).status == 202
    # It is accepted, and not in the cluster yet.
    refused = await send_as(projects_desk, "root", "DELETE", "/projects/ads")
    assert (refused.status, refused.reasons) == (409, ["ProjectNotEmpty"])
    assert refused.body["errors"][0]["detail"] == "project ads has 1 workload: hello"
    assert (await send_as(projects_desk, "olga", "DELETE", "/projects/ads")).reasons == ["Forbidden"]


async def test_empty_project_is_deleted(projects_desk: UnwatchedDesk) -> None:
    answer = await send_as(projects_desk, "root", "DELETE", "/projects/ads")
    assert (answer.status, answer.body["verb"]) == (202, "delete")
    assert (await send_as(projects_desk, "root", "DELETE", "/projects/none")).reasons == ["ProjectUnknown"]


PLANS: dict[str, tuple[str, Object]] = {
    "members": ("olga", {**SPEC, "members": MORE_MEMBERS}),
    "quota": ("olga", {**SPEC, "quota": {"on-demand": {}}}),
    "quota and review": ("olga", {**SPEC, "quota": {"on-demand": {}}, "review": "open"}),
    "last owner": ("olga", {**SPEC, "members": {"viewer": {"people": ["olga"]}}}),
    "deployer": ("dan", {**SPEC, "contact": "#dan"}),
    "viewer": ("vera", SPEC),
    "administrator": ("root", {**SPEC, "quota": {"on-demand": {}}}),
    "expired": ("root", {**SPEC, "expires": "2020-01-01"}),
}


@pytest.mark.parametrize(("caller", "spec"), PLANS.values(), ids=PLANS)
async def test_plan_reports_the_refusals_of_the_deploy(projects_desk: UnwatchedDesk, caller: str, spec: Object) -> None:
    """In the same words; a role that is missing is one problem of a plan, and ends a deploy before the others."""
    text = project_text(spec)
    planned = (await send_as(projects_desk, caller, "POST", "/projects/ads/plans", text)).body
    deployed = await send_as(projects_desk, caller, "PUT", "/projects/ads", text)
    found = [{**each, "where": None} for one in planned for each in one["errors"]]
    refused = [{**each, "where": None} for each in deployed.body.get("errors", [])]
    assert found[: len(refused)] == refused
    assert bool(found) == bool(refused) == (deployed.status != 202)


async def test_unavailable_platform_decides_nothing(
    projects_desk: UnwatchedDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No project is taken for a missing one because the cluster does not respond."""

    async def away(_: object, __: str) -> Project:
        raise Refused(Problem(CLUSTER_UNREACHABLE, "the cluster does not respond"))

    monkeypatch.setattr(type(projects_desk.platform), "read_project", away)
    answer = await send_as(projects_desk, "root", "PUT", "/projects/ads", project_text(SPEC))
    assert (answer.status, answer.reasons) == (503, ["ClusterUnreachable"])
    assert await audit_of(projects_desk) == []
