"""What is wrong with a file is told by `pin plan`: all of it, where it stands, what is allowed, and what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pincompute.api.kinds import KINDS
from pincompute.main import group


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))


def planned(*texts: str) -> Result:
    for number, text in enumerate(texts):
        Path(f"{number}.yaml").write_text(text)
    return CliRunner().invoke(group(), ["plan", "--offline", *(f"{number}.yaml" for number in range(len(texts)))])


def refused(*texts: str) -> str:
    """What is told; nothing else comes of it, and no door falls off its hinges."""
    result = planned(*texts)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stderr


TWELVE = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata:
  name: Hello_World
  project: Me!
  lables: {}
spec:
  imag: hello:dev
  port: 70000
  replicas: 1000000000
  tier: bests
  memory: lots
  comand: []
  environment:
    A: 1
  gpus: -1
  template:
    spec:
      contaners: []
      priorityClassName: mine
"""
TOLD = [
    (4, "metadata.name", "lower-case letters"),
    (5, "metadata.project", "lower-case letters"),
    (6, "metadata.lables", "did you mean labels?"),
    (8, "spec.imag", "did you mean image?"),
    (9, "spec.port", "<= 65535"),
    (10, "spec.replicas", "<= 10000"),
    (11, "spec.tier", "reserved, on-demand, preemptible"),
    (12, "spec.memory", "an amount such as 2, 500m or 512Mi"),
    (13, "spec.comand", "did you mean command?"),
    (15, "spec.environment.A", "write it in quotes"),
    (16, "spec.gpus", ">= 0"),
    (19, "spec.template.spec.contaners", "did you mean containers?"),
    (20, "spec.template.spec.priorityClassName", "the tier decides it"),
]


@pytest.mark.parametrize(("line", "field", "words"), TOLD)
def test_each_of_a_dozen_faults_is_told_with_its_line_and_what_is_allowed(line: int, field: str, words: str) -> None:
    said = refused(TWELVE)
    (found,) = [each for each in said.split("\n0.yaml:") if each.removeprefix("0.yaml:").startswith(f"{line} {field}:")]
    assert words in found


def test_a_dozen_faults_are_told_at_once() -> None:
    assert refused(TWELVE).count("[DocumentInvalid]") >= 12


SERVICE = (
    "apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {name: web}\nspec: {image: 'a:1', port: 80}\n"
)
SHORT = {
    "PinterestService": "image: a:1, port: 80",
    "PinterestStatefulSet": "image: a:1, port: 80",
    "PinterestJobSet": "image: a:1, tasks: 3",
    "PinterestCronJob": "image: a:1, schedule: 30 3 * * *",
    "PinterestTrainingJob": "image: a:1, framework: pytorch, workers: 2",
    "PinterestDaemon": "image: a:1",
}


def document(kind: str, spec: str = "", name: str = "web") -> str:
    whole = ", ".join(each for each in (SHORT[kind], spec) if each)
    return f"apiVersion: pinterest.com/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{whole}}}\n"


@pytest.mark.parametrize("kind", SHORT)
def test_the_short_form_of_every_kind_is_right(kind: str) -> None:
    """Else what is refused below would say nothing."""
    result = planned(document(kind))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("port: 80, port: 81", "'port' stands here again, first in line 4"),
        ("tier: best", "0.yaml:4 spec.tier: tier is 'best': expected reserved, on-demand, preemptible"),
        ("whatever: 1", "0.yaml:4 spec.whatever: there is no field 'whatever'"),
        ("memory: 1 GB", "expected an amount such as 2, 500m or 512Mi"),
        ("owner: on", "owner is True: expected a text, got true or false"),
        ("environment: {PIN_KIND: a}", "names that begin with PIN_ are set by the platform"),
        ("environment: {VERSION: 017}", 'the value of VERSION is wrong: expected a text, got a number'),
        ("configuration: {a/b: c}", "no file can be called 'a/b'"),
        ("hold: {runtime: 1, until: soon}", "until is 'soon'"),
        ("template: {metadata: {labels: {pinterest.com/tier: a}}}", "labels of pinterest.com are set by the platform"),
        ("sidecarConfig: {logs: debug}", "logs is 'debug'"),
    ],
)  # fmt: skip
def test_what_no_workload_can_say(kind: str, spec: str, told: str) -> None:
    assert told in refused(document(kind, spec))


@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ("labels: {a b: c}", "0.yaml:3 metadata.labels.a b: no label can be called 'a b'"),
        ("labels: {a: b c}", "0.yaml:3 metadata.labels.a: no label can be 'b c'"),
        ("labels: {a: 1}", "0.yaml:3 metadata.labels.a: "),
        ("annotations: {-a: c}", "0.yaml:3 metadata.annotations.-a: no annotation can be called '-a'"),
        (f"annotations: {{a: {'b' * 250_000}}}", "they have 250,001 bytes together"),
    ],
)
def test_what_nothing_can_be_marked_with(kind: str, marks: str, told: str) -> None:
    assert told in refused(document(kind, name=f"web, {marks}"))


@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize("name", ["a" * 64, "Web", "1web", "a.b", "-", '"web\\n"'])
def test_names_that_cannot_be(kind: str, name: str) -> None:
    assert f"a name has at most {KINDS[kind].MAX_NAME}" in refused(document(kind, name=name))


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        ("PinterestDaemon", "nodes: {a/b/c: d}", "no label can be called 'a/b/c'"),
        ("PinterestDaemon", "nodes: {disk: very fast}", "no label can be 'very fast'"),
        ("PinterestService", "replicas: 1000000000", "replicas is 1000000000: expected a number <= 10000"),
        ("PinterestService", "replicas: 1e9", "replicas is 1000000000: expected a number <= 10000"),
        ("PinterestService", "unavailable: -1", "unavailable is -1: expected a number or a share such as 1 or 25%"),
        ("PinterestService", "unavailable: '2'", "unavailable is '2': expected a number or a share such as 1 or 25%"),
        (
            "PinterestService",
            "unavailable: 101%",
            "unavailable is '101%': expected a number or a share",
        ),
        ("PinterestService", "memory: -1", "memory is -1: expected an amount such as 2, 500m or 512Mi"),
        ("PinterestService", "replicas: 1.5", "replicas is 1.5: expected a number, got a fraction"),
        ("PinterestService", "replicas: '3'", "replicas is '3': expected a number, got a text"),
        ("PinterestService", "ports: [{name: a, port: 80}]", "port 80 is that of 'http' already"),
        ("PinterestService", 'ports: [{name: "a\\n", port: 81}]', "there is a line break at its end"),
        ("PinterestService", "ports: [{name: b, port: 80}]", "port 80 is what clients ask of 'http' already"),
        (
            "PinterestService",
            "ports: [{name: b, port: 81}], loadBalancer: {portName: b}",
            "spec.ports.0.name: two ports are called 'b'",
        ),
        (
            "PinterestService",
            "ports: [{name: b, port: 81}], loadBalancer: {portName: ''}",
            "spec.loadBalancer.portName: one of several ports has no name",
        ),
        ("PinterestService", "loadBalancer: {hots: a.b}", "spec.loadBalancer.hots: there is no field 'hots'"),
        ("PinterestCronJob", "timeZone: Europe/Berlinn", "did you mean Europe/Berlin?"),
        ("PinterestJobSet", "items: [a]", "tasks and items both say how many there are"),
    ],
)
def test_what_one_kind_cannot_say(kind: str, spec: str, told: str) -> None:
    assert told in refused(document(kind, spec))


@pytest.mark.parametrize("schedule", ["30 3 31 2 *", "30 3 30 feb *", "often", "60 * * * *", "* * * *", "@hourli"])
def test_a_schedule_that_never_comes_or_is_none(schedule: str) -> None:
    text = document("PinterestCronJob").replace("30 3 * * *", f"'{schedule}'")
    assert "0.yaml:4 spec.schedule: " in refused(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file holds no document"),
        ("a: [1\n", "this is not YAML"),
        ("- a\n", "a document must be a set of fields"),
        ("a: &x {b: 1}\nc: *x\n", "anchors and aliases are not for workload files"),
        (SERVICE.replace("pinterest.com/v1", "pinterest.com/v2"), "next: write apiVersion: pinterest.com/v1"),
        (SERVICE.replace("PinterestService", "PinterestServce"), "did you mean PinterestService?"),
        (SERVICE.replace("PinterestService", "Deployment"), "there is no kind 'Deployment'"),
        (SERVICE.replace("image: 'a:1'", "image: 'a b'"), "'a b' cannot be an image"),
    ],
)
def test_what_is_no_document_of_ours(text: str, told: str) -> None:
    assert told in refused(text)


PART = """\
apiVersion: pinterest.com/v1
kind: PinterestSidecar
metadata: {name: logs-1}
spec:
  image: logs:1
  port: 4000
  parameters:
    level: {description: How much., allowed: [debug, info], variable: LEVEL}
---
apiVersion: pinterest.com/v1
kind: Runtime
metadata: {name: "7"}
spec: {parts: [logs-1]}
---
"""


@pytest.mark.parametrize("kind", ["PinterestService", "PinterestStatefulSet"])
@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("ports: [{name: x, port: 4000}]", "both want port 4000"),
        ("sidecarConfig: {logs: {levle: debug}}", "did you mean level?"),
        ("sidecarConfig: {logs: {level: loud}}", "one of debug, info"),
        ("sidecarConfig: {log: {level: debug}}", "did you mean logs?"),
        ("hold: {runtime: 3, until: 2099-12-31}", "it holds runtime 3, and there is no such runtime"),
        ("template: {spec: {containers: [{name: logs, image: b}]}}", "both want the container name 'logs'"),
    ],
)
def test_what_does_not_go_with_the_runtime(kind: str, spec: str, told: str) -> None:
    assert told in refused(PART + document(kind, spec))


def test_of_several_files_none_is_planned_where_one_is_wrong() -> None:
    said = refused(SERVICE, SERVICE.replace("port: 80", "port: 0"), SERVICE.replace("image", "imag"))
    assert "1.yaml:4 spec.port" in said
    assert "2.yaml:4 spec.imag" in said


def test_files_that_are_no_yaml_are_told_together() -> None:
    said = refused(SERVICE, "a: [\n", "b: 1\nb: 2\n")
    assert "1.yaml:2: this is not YAML" in said
    assert "2.yaml:2 b: 'b' stands here again" in said
