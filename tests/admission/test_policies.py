"""Policy evaluation: cases with the exact text of each problem, and the validation of policies themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pincompute.admission.policies import PolicyInput, evaluate_policies
from pincompute.api.documents import Document, read_document
from pincompute.api.identity import Identity, IdentityType
from pincompute.api.names import API_VERSION
from pincompute.api.policy import Policy
from pincompute.api.project import Project
from pincompute.api.validation import parse_resource
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.planning.footprint import Footprint

CASES = sorted(Path(__file__).with_name("policies").glob("*.yaml"))
FOOTPRINT = Footprint("on-demand", cpu=1500, memory=1 << 30, gpus=0, pods=2)


def workload(fields: dict[str, Any]) -> Any:
    kind = fields.get("kind", "PinterestService")
    metadata = {"name": "web", "project": "ads", **fields.get("metadata", {})}
    spec = {"image": "hello:1.2", **({"port": 8080} if kind == "PinterestService" else {}), **fields.get("spec", {})}
    return parse_resource(
        Document({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}, "", {}), "ads"
    )


def project(*policies: Any, **fields: Any) -> Project:
    spec: dict[str, Any] = {"owner": "team-ads", "contact": "#ads", "quota": {"on-demand": {}}, **fields}
    document = {"metadata": {"name": "ads"}, "spec": {**spec, "policies": list(policies)}, "kind": "Project"}
    return msgspec.convert(document, Project)


def policy(rule: str, **fields: Any) -> Policy:
    return msgspec.convert({"name": "one", "rule": rule, "message": "it must be so", **fields}, Policy)


def evaluate(*policies: Policy, of: Workload | None = None, platform: bool = False) -> tuple[Problem, ...]:
    owner = project() if platform else project(*map(msgspec.to_builtins, policies))
    case = PolicyInput(of or workload({}), FOOTPRINT, owner, Identity("ann"))
    return evaluate_policies(policies if platform else (), case)


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.stem)
def test_reports_violations_of_case(case: Path) -> None:
    fields = yaml.safe_load(case.read_text())
    by: dict[str, Any] = {"name": "ann", "sort": "person", "groups": [], **fields.get("who", {})}
    caller = Identity(by["name"], IdentityType(by["sort"]), frozenset(by["groups"]))
    owner = project(*fields.get("project", {}).pop("policies", ()), **fields.get("project", {}))
    submission = PolicyInput(workload(fields.get("workload", {})), FOOTPRINT, owner, caller, fields.get("build", {}))
    problems = evaluate_policies(msgspec.convert(fields.get("platform", []), tuple[Policy, ...]), submission)
    assert "\n".join(each.text() for each in problems) == fields.get("problems", "").rstrip("\n")
    # The submission record stores problems as JSON, and shows them again later.
    stored = [msgspec.json.encode(each.json()) for each in problems]
    assert [Problem.from_json(msgspec.json.decode(each)) for each in stored] == list(problems)


def test_accepts_without_policies() -> None:
    assert evaluate() == ()


def test_reports_all_violated_policies_at_once() -> None:
    few = policy("requests.pods < 2", name="few")
    assert [each.reason.code for each in evaluate(policy("false"), few, policy("nope"))] == [
        "PolicyInvalid", "PolicyDenied", "PolicyDenied",
    ]  # fmt: skip


def test_contact_of_platform_policies_is_the_administrators() -> None:
    (problem,) = evaluate(policy("false"), platform=True)
    assert problem.next == "fix it, or ask the platform administrators"


@pytest.mark.parametrize(
    "rule", ["workload.spec.nope == 1", "1 / 0 == 1", "nope", "workload.spec.replicas", "(", "true " * 300]
)
def test_invalid_policy_rejects_every_submission(rule: str) -> None:
    """Such a policy can exist only if it was written past the desk."""
    (problem,) = evaluate(policy(rule))
    assert problem.reason.code == "PolicyInvalid"
    assert "team-ads (#ads)" in problem.next


_DOCUMENT = """\
apiVersion: pinterest.com/v1
kind: Project
metadata: {name: ads}
spec:
  owner: team-ads
  quota: {on-demand: {}}
  policies:
    - name: one
      message: it must be so
      kinds: [PinterestService]
      rule: RULE
"""


def _policy_errors(rule: str, **replacements: str) -> list[str]:
    text = _DOCUMENT.replace("RULE", msgspec.json.encode(rule).decode())
    for before, after in replacements.items():
        text = text.replace(before, after)
    try:
        parse_resource(read_document(text, "ads.yaml"), "")
    except Refused as refused:
        return [each.text() for each in refused.problems]
    return []


@pytest.mark.parametrize(
    "rule",
    [
        "workload.spec.replicas >= 2",
        "has(workload.spec.hold) && workload.spec.hold.runtime > 41",
        "has(workload.metadata.labels.team) && workload.metadata.labels.team == 'ads'",
        "!('a/b' in workload.metadata.labels) || workload.metadata.labels['a/b'] == 'ads'",
        "containers.all(c, c.image.startsWith('registry/') && c.memoryLimit > 0)",
        "workload.spec.environment.all(name, name != 'PASSWORD')",
        "workload.spec.command.exists(word, word == '--safe')",
        "requests.cpu <= 8 && requests.memory < 1024 * 1024 * 1024 && requests.gpus + requests.pods < 10",
        "who.name == project.spec.owner || 'admins' in who.groups || who.sort == 'program' || who.administers",
        "has(build.version) && has(build.reviewers) && size(build.reviewers) >= 2",
        "has(project.spec.landing) && project.spec.landing.branch == 'main'",
        "workload.kind == 'PinterestService' && workload.metadata.name != project.metadata.name",
    ],
)
def test_accepts_valid_rule(rule: str) -> None:
    assert _policy_errors(rule) == []
    assert not [each for each in evaluate(policy(rule)) if each.reason.code != "PolicyDenied"]


@pytest.mark.parametrize(
    ("rule", "error", "next_"),
    [
        (
            "workload.spec.replcias >= 2",
            "15 workload.spec of PinterestService has no field 'replcias'",
            "did you mean replicas?",
        ),
        (
            "containers.all(c, c.imag == 'a')",
            "21 c has no field 'imag'",
            "did you mean image?",
        ),
        (
            "workload.spec.hold.runtime > 1",
            "15 workload.spec.hold may be absent",
            "test first: has(workload.spec.hold)",
        ),
        (
            "requests['cpus'] > 1",
            "10 requests has no field 'cpus'",
            "did you mean cpu?",
        ),
        (
            "who.groups == [] && workload.metadata.labels['a'] == 'b'",
            "46 workload.metadata.labels['a'] may be absent",
            "test first: 'a' in workload.metadata.labels",
        ),
        (
            "build.version == '1'",
            "7 build.version may be absent",
            "test first: has(build.version)",
        ),
        (
            "containers.image == 'a'",
            "12 containers has no fields",
            "containers.all(each, …)",
        ),
        (
            "workload.spec.image.tag == 'a'",
            "21 workload.spec.image has no fields",
            "",
        ),
        (
            "whom.name == 'a'",
            "5 undeclared reference to 'whom.name'",
            "",
        ),
        (
            "workload.spec.replicas >=",
            "26 unexpected end",
            "",
        ),
        (
            "workload.spec.replicas",
            "1 it must be true or false, but is of unknown type (add == true)",
            "",
        ),
    ],
)
def test_reports_error_at_its_position_in_the_rule(rule: str, error: str, next_: str) -> None:
    (text,) = _policy_errors(rule)
    column, what = error.split(" ", 1)
    expected = f"at character {column} of the rule: {what}  [DocumentInvalid]"
    assert text == f"ads.yaml:11 spec.policies.0.rule: {expected}" + (f"\n  next: {next_}" if next_ else "")


def test_suggests_the_kinds_that_have_a_field() -> None:
    (text,) = _policy_errors("workload.spec.replicas > 1", **{"      kinds: [PinterestService]\n": ""})
    assert text.endswith("next: kinds: [PinterestService, PinterestStatefulSet]")


def test_rejects_unknown_kind() -> None:
    (text,) = _policy_errors("true", **{"[PinterestService]": "[PinterestServic]"})
    assert "unknown kind of workload 'PinterestServic'" in text
    assert "did you mean PinterestService?" in text
