"""Policies: in a folder of cases, what each says of a document, word by word; and what is wrong with one itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pincompute.api.admission import admit
from pincompute.api.documents import Document, read_one
from pincompute.api.identity import Identity, Sort
from pincompute.api.names import API_VERSION
from pincompute.api.policy import Policy
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.planning.policies import Case, judge
from pincompute.planning.quotas.footprint import Footprint

CASES = sorted(Path(__file__).with_name("policies").glob("*.yaml"))
HOLDS = Footprint("on-demand", cpu=1500, memory=1 << 30, gpus=0, pods=2)


def workload(said: dict[str, Any]) -> Any:
    kind = said.get("kind", "PinterestService")
    metadata = {"name": "web", "project": "ads", **said.get("metadata", {})}
    spec = {"image": "hello:1.2", **({"port": 8080} if kind == "PinterestService" else {}), **said.get("spec", {})}
    return admit(Document({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}, "", {}), "ads")


def project(*policies: Any, **more: Any) -> Project:
    spec: dict[str, Any] = {"owner": "team-ads", "contact": "#ads", "quota": {"on-demand": {}}, **more}
    said = {"metadata": {"name": "ads"}, "spec": {**spec, "policies": list(policies)}, "kind": "Project"}
    return msgspec.convert(said, Project)


def policy(rule: str, **more: Any) -> Policy:
    return msgspec.convert({"name": "one", "rule": rule, "message": "it must be so", **more}, Policy)


def judged(*policies: Policy, of: Workload | None = None, platform: bool = False) -> tuple[Problem, ...]:
    whose = project() if platform else project(*map(msgspec.to_builtins, policies))
    return judge(policies if platform else (), Case(of or workload({}), HOLDS, whose, Identity("ann")))


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.stem)
def test_cases(case: Path) -> None:
    said = yaml.safe_load(case.read_text())
    by: dict[str, Any] = {"name": "ann", "sort": "person", "groups": [], **said.get("who", {})}
    who = Identity(by["name"], Sort(by["sort"]), frozenset(by["groups"]))
    whose = project(*said.get("project", {}).pop("policies", ()), **said.get("project", {}))
    asked = Case(workload(said.get("workload", {})), HOLDS, whose, who, said.get("build", {}))
    problems = judge(msgspec.convert(said.get("platform", []), tuple[Policy, ...]), asked)
    assert "\n".join(each.text() for each in problems) == said.get("told", "").rstrip("\n")
    # What was told can be told again: the record keeps it as JSON.
    assert [Problem.of(msgspec.json.decode(msgspec.json.encode(each.json()))) for each in problems] == list(problems)


def test_nobody_pays_for_policies_that_are_not_there() -> None:
    assert judged() == ()


def test_every_policy_is_told_at_once() -> None:
    few = policy("requests.pods < 2", name="few")
    assert [each.reason.code for each in judged(policy("false"), few, policy("nope"))] == [
        "PolicyUnclear", "PolicyDenied", "PolicyDenied",
    ]  # fmt: skip


def test_of_the_platform_its_administrators_are_asked() -> None:
    (problem,) = judged(policy("false"), platform=True)
    assert problem.next == "mend it, or ask who administers the platform"


@pytest.mark.parametrize(
    "rule", ["workload.spec.nope == 1", "1 / 0 == 1", "nope", "workload.spec.replicas", "(", "true " * 300]
)
def test_a_policy_that_is_wrong_lets_nothing_in(rule: str) -> None:
    """However it came there: somebody wrote it past everybody."""
    (problem,) = judged(policy(rule))
    assert problem.reason.code == "PolicyUnclear"
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


def _faults(rule: str, **more: str) -> list[str]:
    text = _DOCUMENT.replace("RULE", msgspec.json.encode(rule).decode())
    for before, after in more.items():
        text = text.replace(before, after)
    try:
        admit(read_one(text, "ads.yaml"), "")
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
def test_what_a_rule_can_ask(rule: str) -> None:
    assert _faults(rule) == []
    assert not [each for each in judged(policy(rule)) if each.reason.code != "PolicyDenied"]


@pytest.mark.parametrize(
    ("rule", "told", "next_"),
    [
        (
            "workload.spec.replcias >= 2",
            "15 workload.spec of a PinterestService has no field 'replcias'",
            "did you mean replicas?",
        ),
        (
            "containers.all(c, c.imag == 'a')",
            "21 c has no field 'imag'",
            "did you mean image?",
        ),
        (
            "workload.spec.hold.runtime > 1",
            "15 workload.spec.hold may not be there",
            "ask first: has(workload.spec.hold)",
        ),
        (
            "requests['cpus'] > 1",
            "10 requests has no field 'cpus'",
            "did you mean cpu?",
        ),
        (
            "who.groups == [] && workload.metadata.labels['a'] == 'b'",
            "46 workload.metadata.labels['a'] may not be there",
            "ask first: 'a' in workload.metadata.labels",
        ),
        (
            "build.version == '1'",
            "7 build.version may not be there",
            "ask first: has(build.version)",
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
            "26 it ends too early",
            "",
        ),
        (
            "workload.spec.replicas",
            "1 it can be anything (ask == true), and must say yes or no",
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_rule_is_told_where_it_is_written(rule: str, told: str, next_: str) -> None:
    (fault,) = _faults(rule)
    column, what = told.split(" ", 1)
    said = f"at character {column} of the rule: {what}  [DocumentInvalid]"
    assert fault == f"ads.yaml:11 spec.policies.0.rule: {said}" + (f"\n  next: {next_}" if next_ else "")


def test_a_field_that_only_some_kinds_have_is_asked_of_those() -> None:
    (fault,) = _faults("workload.spec.replicas > 1", **{"      kinds: [PinterestService]\n": ""})
    assert fault.endswith("next: kinds: [PinterestService, PinterestStatefulSet]")


def test_a_kind_that_there_is_not() -> None:
    (fault,) = _faults("true", **{"[PinterestService]": "[PinterestServic]"})
    assert "there is no kind 'PinterestServic' of workload" in fault
    assert "did you mean PinterestService?" in fault
