"""`pin import -f`: files of Kubernetes objects become workload files, without a cluster."""

from __future__ import annotations

import io
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner, Result

from pincompute.api.documents import MAX_VALUES, read_documents
from pincompute.base.clock import Clock
from pincompute.base.progress import Progress
from pincompute.cli import import_many
from pincompute.main import command_group

CLEAN = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: mailer}
spec:
  template:
    metadata: {labels: {app: mailer}}
    spec:
      containers:
      - name: mailer
        image: mailer:1
        resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {memory: 1Gi}}
"""
CHANGED = CLEAN.replace("mailer", "shop").replace(", limits: {memory: 1Gi}", "")
JOB_SPEC = """\
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: render
        image: render:1
        resources: {{requests: {{cpu: 100m, memory: 1Gi}}, limits: {{memory: 1Gi}}}}
"""
IMPOSSIBLE = CLEAN.replace("apps/v1", "apps/v1beta1").replace("mailer", "old")
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {key: s3cret}\n"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(command_group(), ("import", *words), input=stdin)


def write(name: str, *documents: str) -> str:
    Path(name).write_text("---\n".join(documents))
    return name


def test_prints_documents_and_a_summary() -> None:
    result = run("-f", write("all.yaml", CLEAN, SECRET), "-n", "shop")
    assert result.exit_code == 0, result.output
    (document,) = read_documents(result.stdout)
    assert document.content["spec"]["worker"] is True
    assert "Deployment/mailer  comes over cleanly" in result.stderr
    assert "1 clean, 0 changed, 0 impossible" in result.stderr
    assert "left as they are: 1 Secret" in result.stderr
    assert "s3cret" not in result.output


def test_imports_an_exported_namespace_larger_than_any_workload_file() -> None:
    padding = "".join(f"    pinterest.com/note-{number}: '{'x' * 100}'\n" for number in range(MAX_VALUES // 10))
    job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations:\n{padding}spec:\n" + JOB_SPEC
    jobs = [job.format(name=f"render-{number}", padding=padding) for number in range(6)]
    result = run("-f", write("all.yaml", *jobs), "--accept", "retention")
    assert result.exit_code == 0, result.output
    (document,) = read_documents(result.stdout)
    assert document.content["spec"]["tasks"] == 6


def test_restricted_import_has_no_lines_for_permissive_defaults() -> None:
    kept = run("-f", write("kept.yaml", CLEAN))
    restricted = run("-f", write("restricted.yaml", CLEAN), "--restricted")
    assert "runAsNonRoot: false" in kept.stdout
    assert restricted.exit_code == 0, restricted.output
    for setting in ("securityContext", "enableServiceLinks", "automountServiceAccountToken"):
        assert setting in kept.stdout
        assert setting not in restricted.stdout


def test_writes_what_is_accepted_and_reports_the_rest() -> None:
    file = write("all.yaml", CLEAN, CHANGED, IMPOSSIBLE)
    result = run("-f", file, "-n", "shop", "-o", "out")
    assert result.exit_code == 1
    assert sorted(Path("out").rglob("*.*")) == [Path("out/mailer.yaml")]
    words = " ".join(result.stderr.split())
    assert "Deployment/shop with changes memory-limit" in words
    assert "Deployment/old cannot be imported apiVersion of Deployment/old is 'apps/v1beta1'" in words
    assert "next: --accept memory-limit" in result.stderr
    assert run("-f", file, "-n", "shop", "-o", "out", "--accept", "memory-limit").exit_code == 1
    assert sorted(Path("out").rglob("*.*")) == [Path("out/mailer.yaml"), Path("out/shop.yaml")]


def test_objects_of_several_namespaces_have_a_folder_each() -> None:
    other = CLEAN.replace("{name: mailer}", "{name: mailer, namespace: other}")
    assert run("-f", write("all.yaml", CLEAN, other), "-n", "shop", "-o", "out").exit_code == 0
    assert sorted(Path("out").rglob("*.yaml")) == [Path("out/other/mailer.yaml"), Path("out/shop/mailer.yaml")]


def test_never_overwrites_another_file() -> None:
    Path("out").mkdir()
    write("out/mailer.yaml", "mine")
    result = run("-f", write("all.yaml", CLEAN), "-n", "shop", "-o", "out")
    assert result.exit_code == 2
    assert Path("out/mailer.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "one of KIND/NAME, --all and -f is needed"),
        (("deployment/web", "--all"), "one of KIND/NAME, --all and -f is needed"),
        (("--all", "--adopt"), "--adopt, --as and --port are for one object"),
        (("-f", "all.yaml", "--as", "web"), "--adopt, --as and --port are for one object"),
        (("deployment/web", "--dry-run"), "--dry-run needs --adopt"),
        (("pod/web",), "'pod/web' cannot be imported"),
        (("web",), "next: pin import deployment/web"),
        (("deployment/web", "--accept", "everything"), "known are memory-limit"),
    ],
)
def test_rejects_wrong_options(words: tuple[str, ...], message: str) -> None:
    write("all.yaml", CLEAN)
    result = run(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_rejects_a_file_without_anything_to_import() -> None:
    result = run("-f", write("all.yaml", SECRET))
    assert result.exit_code == 1
    assert "nothing to import" in result.stderr
    assert "s3cret" not in result.output


class RecordingTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_of_a_terminal_and_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances by a second with each object."""
    monkeypatch.setenv("COLUMNS", "80")
    terminal = RecordingTerminal()
    seconds = count()
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr(import_many, "Progress", lambda: Progress(terminal, cast("Clock", clock)))
    natives = import_many.read_native_files([write("all.yaml", CLEAN, CHANGED, IMPOSSIBLE)], "shop")
    assert len(import_many.survey_with_progress(natives, restricted=False)) == 3
    lines = terminal.getvalue().split("\r\033[K")
    assert lines == [f"{number} of 3 objects imported" for number in range(3)] + [""]
