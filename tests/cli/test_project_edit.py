"""Commands that create projects and edit their members: what is typed, and what is sent."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from pincompute.api.documents import read_document
from pincompute.api.membership import ProjectRole
from pincompute.api.project import Project, ProjectSpec, Quota, RoleHolders, TierQuota
from pincompute.api.structs import Metadata
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.cli.deploy_project import document_owner, owner_of_content
from pincompute.cli.project_edit import parse_member_and_role, parse_quota
from pincompute.cli.yaml_writer import format_document
from pincompute.main import command_group
from pincompute.planning.membership import Member
from pincompute.planning.workload_document import project_document


def run(*words: str) -> Result:
    return CliRunner().invoke(command_group(), words)


def test_parses_members_with_roles() -> None:
    assert parse_member_and_role("ann=owner") == (Member("people", "ann"), ProjectRole.OWNER)
    assert parse_member_and_role("group:a=b=viewer") == (Member("groups", "a=b"), ProjectRole.VIEWER)
    for text in ("ann", "ann=", "ann=admin", "=owner"):
        with pytest.raises(Refused):
            parse_member_and_role(text)


def test_parses_tiers_with_limits() -> None:
    quota = parse_quota(["on-demand:cpu=100,memory=2Ti", "preemptible"])
    assert quota == Quota(on_demand=TierQuota(cpu=100, memory="2Ti"), preemptible=TierQuota())
    assert parse_quota(["reserved:pods=20"]) == Quota(reserved=TierQuota(pods=20))
    for text in ("fast", "on-demand:cpus=1", "on-demand:cpu", "on-demand:gpus=many", "infrastructure"):
        with pytest.raises(Refused) as refused:
            parse_quota([text])
        assert refused.value.problems[0].next.startswith("--quota ")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kind: Project\nmetadata: {name: ads}\n", "ads"),
        ('{"kind": "Project", "metadata": {"name": "ads"}}', "ads"),
        ("kind: PinterestService\nmetadata: {name: Project}\n", ""),
        ("kind: Project\nmetadata: ads\n", ""),
        ("kind: Project\nmetadata: {name: 7}\n", ""),
        ("kind: [Project\n", ""),
    ],
)
def test_finds_the_project_of_a_document(text: str, name: str) -> None:
    assert document_owner(text).name == name


def test_workload_is_no_project() -> None:
    assert owner_of_content({"kind": "PinterestService", "metadata": {"name": "ads"}}) == ("", "")


def test_document_is_read_as_the_same_project() -> None:
    spec = ProjectSpec(
        owner="team-ads", contact="#ads", description="a: b", quota=Quota(on_demand=TierQuota()), expires="2030-01-01"
    )
    metadata = Metadata(
        name="ads", uid="1", generation=3, labels={"team": "ads"}, annotations={"pinterest.com/submission": "s-1"}
    )
    text = format_document(project_document(Project(metadata=metadata, spec=spec)))
    assert "s-1" not in text
    parsed = parse_resource(read_document(text), "")
    assert parsed.spec == spec
    assert parsed.metadata == Metadata(name="ads", labels={"team": "ads"})


def test_members_are_in_the_document() -> None:
    holders = RoleHolders(people=["ann"], programs=["build/ci"])
    spec = ProjectSpec(owner="x", quota=Quota(on_demand=TierQuota()))
    project = Project(metadata=Metadata(name="ads"), spec=spec)
    members = msgspec.structs.replace(spec.members, owner=holders)
    project = msgspec.structs.replace(project, spec=msgspec.structs.replace(spec, members=members))
    written = project_document(project)["spec"]["members"]
    assert written == {"owner": {"people": ["ann"], "programs": ["build/ci"]}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create", "ads"), "Missing option '--owner'"),
        (("create", "ads", "--owner", "x", "--member", "ann"), "'ann' must be MEMBER=ROLE"),
        (("create", "ads", "--owner", "x", "--quota", "fast"), "'fast' must be TIER:RESOURCE=LIMIT"),
        (("create", "ads", "--owner", "x", "--review", "none"), "'none' is not one of 'landed', 'open'"),
        (("add-member", "ads", "ann"), "Missing option '--role'"),
        (("add-member", "ads", "group:", "--role", "owner"), "'group:' is no member"),
    ],
)
def test_rejects_invalid_arguments_with_what_to_type(words: tuple[str, ...], message: str) -> None:
    result = run("project", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_words_that_are_no_command_are_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIN_STATE", str(tmp_path))
    for words in ((), ("ads",), ("show", "create"), ("-o", "json"), ("ads", "--name", "none")):
        result = run("project", *words)
        assert (result.exit_code, "no platform" in result.stderr) == (1, True), words
    assert "Commands:" in run("project", "--help").output


def test_break_glass_is_for_workloads(tmp_path: Path) -> None:
    file = tmp_path / "ads.yaml"
    file.write_text("kind: Project\nmetadata: {name: ads}\n")
    result = run("deploy", str(file), "--break-glass", "fire")
    assert result.exit_code == 2
    assert "--break-glass is for workloads" in result.stderr
