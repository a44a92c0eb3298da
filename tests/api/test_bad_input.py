"""`pin plan` reports all errors of its files, with line, expectation and suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pincompute.api.kinds import KINDS
from pincompute.main import command_group


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))


def plan_offline(*texts: str) -> Result:
    for number, text in enumerate(texts):
        Path(f"{number}.yaml").write_text(text)
    return CliRunner().invoke(
        command_group(), ["plan", "--offline", *(f"{number}.yaml" for number in range(len(texts)))]
    )


def plan_errors(*texts: str) -> str:
    """Error output of a failing plan, which must have no other output and no traceback."""
    result = plan_offline(*texts)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stderr


MANY_ERRORS = """\
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
EXPECTED_ERRORS = [
    (4, "metadata.name", "lower-case letters"),
    (5, "metadata.project", "lower-case letters"),
    (6, "metadata.lables", "did you mean labels?"),
    (8, "spec.imag", "did you mean image?"),
    (9, "spec.port", "<= 65535"),
    (10, "spec.replicas", "<= 10000"),
    (11, "spec.tier", "reserved, on-demand, preemptible"),
    (12, "spec.memory", "a quantity such as 2, 500m or 512Mi"),
    (13, "spec.comand", "did you mean command?"),
    (15, "spec.environment.A", "add quotes"),
    (16, "spec.gpus", ">= 0"),
    (19, "spec.template.spec.contaners", "did you mean containers?"),
    (20, "spec.template.spec.priorityClassName", "set by the tier"),
]


@pytest.mark.parametrize(("line", "field", "words"), EXPECTED_ERRORS)
def test_reports_each_error_with_line_and_expectation(line: int, field: str, words: str) -> None:
    errors = plan_errors(MANY_ERRORS)
    (found,) = [
        each for each in errors.split("\n0.yaml:") if each.removeprefix("0.yaml:").startswith(f"{line} {field}:")
    ]
    assert words in found


def test_reports_all_errors_at_once() -> None:
    assert plan_errors(MANY_ERRORS).count("[DocumentInvalid]") >= 12


SERVICE = (
    "apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {name: web}\nspec: {image: 'a:1', port: 80}\n"
)
MINIMAL_SPECS = {
    "PinterestService": "image: a:1, port: 80",
    "PinterestStatefulSet": "image: a:1, port: 80",
    "PinterestJobSet": "image: a:1, tasks: 3",
    "PinterestCronJob": "image: a:1, schedule: 30 3 * * *",
    "PinterestTrainingJob": "image: a:1, framework: pytorch, workers: 2",
    "PinterestDaemon": "image: a:1",
}


def document(kind: str, spec: str = "", name: str = "web") -> str:
    whole = ", ".join(each for each in (MINIMAL_SPECS[kind], spec) if each)
    return f"apiVersion: pinterest.com/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{whole}}}\n"


@pytest.mark.parametrize("kind", MINIMAL_SPECS)
def test_accepts_minimal_document(kind: str) -> None:
    """The rejected documents below differ from these in one field."""
    result = plan_offline(document(kind))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("kind", MINIMAL_SPECS)
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("port: 80, port: 81", "duplicate field 'port', first set in line 4"),
        ("tier: best", "0.yaml:4 spec.tier: tier is 'best': expected reserved, on-demand, preemptible"),
        ("whatever: 1", "0.yaml:4 spec.whatever: unknown field 'whatever'"),
        ("memory: 1 GB", "expected a quantity such as 2, 500m or 512Mi"),
        ("owner: on", "owner is True: expected a string, got true or false"),
        ("environment: {PIN_KIND: a}", "names that begin with PIN_ are set by the platform"),
        ("environment: {VERSION: 017}", 'wrong type of VERSION: expected a string, got a number'),
        ("configuration: {a/b: c}", "invalid file name 'a/b'"),
        ("hold: {runtime: 1, until: soon}", "until is 'soon'"),
        ("template: {metadata: {labels: {pinterest.com/tier: a}}}", "labels of pinterest.com are set by the platform"),
        ("sidecarConfig: {logs: debug}", "logs is 'debug'"),
    ],
)  # fmt: skip
def test_rejects_invalid_field_of_any_kind(kind: str, spec: str, message: str) -> None:
    assert message in plan_errors(document(kind, spec))


@pytest.mark.parametrize("kind", MINIMAL_SPECS)
@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("labels: {a b: c}", "0.yaml:3 metadata.labels.a b: invalid label name 'a b'"),
        ("labels: {a: b c}", "0.yaml:3 metadata.labels.a: invalid label value 'b c'"),
        ("labels: {a: 1}", "0.yaml:3 metadata.labels.a: "),
        ("annotations: {-a: c}", "0.yaml:3 metadata.annotations.-a: invalid annotation name '-a'"),
        (f"annotations: {{a: {'b' * 250_000}}}", "annotations have 250,001 bytes together"),
    ],
)
def test_rejects_invalid_labels_and_annotations(kind: str, metadata: str, message: str) -> None:
    assert message in plan_errors(document(kind, name=f"web, {metadata}"))


@pytest.mark.parametrize("kind", MINIMAL_SPECS)
@pytest.mark.parametrize("name", ["a" * 64, "Web", "1web", "a.b", "-", '"web\\n"'])
def test_rejects_invalid_name(kind: str, name: str) -> None:
    assert f"a name has at most {KINDS[kind].MAX_NAME_LENGTH}" in plan_errors(document(kind, name=name))


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        ("PinterestDaemon", "nodes: {a/b/c: d}", "invalid label name 'a/b/c'"),
        ("PinterestDaemon", "nodes: {disk: very fast}", "invalid label value 'very fast'"),
        ("PinterestService", "replicas: 1000000000", "replicas is 1000000000: expected a number <= 10000"),
        ("PinterestService", "replicas: 1e9", "replicas is 1000000000: expected a number <= 10000"),
        ("PinterestService", "unavailable: -1", "unavailable is -1: expected a number or percentage such as 1 or 25%"),
        (
            "PinterestService",
            "unavailable: '2'",
            "unavailable is '2': expected a number or percentage such as 1 or 25%",
        ),
        (
            "PinterestService",
            "unavailable: 101%",
            "unavailable is '101%': expected a number or percentage",
        ),
        ("PinterestService", "memory: -1", "memory is -1: expected a quantity such as 2, 500m or 512Mi"),
        ("PinterestService", "replicas: 1.5", "replicas is 1.5: expected a number, got a decimal number"),
        ("PinterestService", "replicas: '3'", "replicas is '3': expected a number, got a string"),
        ("PinterestService", "ports: [{name: a, port: 80}]", "port 80 is already used by 'http'"),
        ("PinterestService", 'ports: [{name: "a\\n", port: 81}]', "remove the line break at the end"),
        ("PinterestService", "ports: [{name: b, port: 80}]", "port 80 is already the load balancer's port 'http'"),
        (
            "PinterestService",
            "ports: [{name: b, port: 81}], loadBalancer: {portName: b}",
            "spec.ports.0.name: duplicate port name 'b'",
        ),
        (
            "PinterestService",
            "ports: [{name: b, port: 81}], loadBalancer: {portName: ''}",
            "spec.loadBalancer.portName: every port needs a name if there are several",
        ),
        ("PinterestService", "loadBalancer: {hots: a.b}", "spec.loadBalancer.hots: unknown field 'hots'"),
        ("PinterestCronJob", "timeZone: Europe/Berlinn", "did you mean Europe/Berlin?"),
        ("PinterestJobSet", "items: [a]", "tasks and items cannot be used together"),
    ],
)
def test_rejects_invalid_field_of_kind(kind: str, spec: str, message: str) -> None:
    assert message in plan_errors(document(kind, spec))


@pytest.mark.parametrize("schedule", ["30 3 31 2 *", "30 3 30 feb *", "often", "60 * * * *", "* * * *", "@hourli"])
def test_rejects_invalid_schedule(schedule: str) -> None:
    text = document("PinterestCronJob").replace("30 3 * * *", f"'{schedule}'")
    assert "0.yaml:4 spec.schedule: " in plan_errors(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("a: [1\n", "invalid YAML"),
        ("- a\n", "a document must be a mapping"),
        ("a: *x\n", "alias *x has no anchor before it"),
        (SERVICE.replace("pinterest.com/v1", "pinterest.com/v2"), "next: write apiVersion: pinterest.com/v1"),
        (SERVICE.replace("PinterestService", "PinterestServce"), "did you mean PinterestService?"),
        (SERVICE.replace("PinterestService", "Deployment"), "unknown kind 'Deployment'"),
        (SERVICE.replace("image: 'a:1'", "image: 'a b'"), "invalid image 'a b'"),
    ],
)
def test_rejects_invalid_file(text: str, message: str) -> None:
    assert message in plan_errors(text)


RUNTIME_WITH_PART = """\
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
    ("spec", "message"),
    [
        ("ports: [{name: x, port: 4000}]", "both use port 4000"),
        ("sidecarConfig: {logs: {levle: debug}}", "did you mean level?"),
        ("sidecarConfig: {logs: {level: loud}}", "one of debug, info"),
        ("sidecarConfig: {log: {level: debug}}", "did you mean logs?"),
        ("hold: {runtime: 3, until: 2099-12-31}", "it holds runtime 3, which does not exist"),
        ("template: {spec: {containers: [{name: logs, image: b}]}}", "both use container name 'logs'"),
    ],
)
def test_rejects_conflict_with_runtime(kind: str, spec: str, message: str) -> None:
    assert message in plan_errors(RUNTIME_WITH_PART + document(kind, spec))


def test_plans_no_file_if_one_is_invalid() -> None:
    errors = plan_errors(SERVICE, SERVICE.replace("port: 80", "port: 0"), SERVICE.replace("image", "imag"))
    assert "1.yaml:4 spec.port" in errors
    assert "2.yaml:4 spec.imag" in errors


def test_reports_yaml_errors_of_all_files() -> None:
    errors = plan_errors(SERVICE, "a: [\n", "b: 1\nb: 2\n")
    assert "1.yaml:2: invalid YAML" in errors
    assert "2.yaml:2 b: duplicate field 'b'" in errors
