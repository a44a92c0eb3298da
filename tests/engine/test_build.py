"""The engine is built once for each content of its sources; interrupted builds resume, incomplete ones are rebuilt."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pincompute.base.problem import Refused
from pincompute.base.progress import Progress
from pincompute.base.reasons import BUILD_FAILED, DISK_FULL, NETWORK_UNREACHABLE, TOOLCHAIN_MISSING
from pincompute.engine import build as builder, toolchain
from pincompute.engine.build import MANIFEST_FILE, build_engine, content_key, find_built

# A fake `go` that records its arguments and fails on demand.
FAKE = """\
#!{python}
import os, pathlib, sys
me = pathlib.Path(__file__).parent
words = sys.argv[1:]
with (me / "asked").open("a") as asked:
    print(*words[:1], words[-1], file=asked)
if words[0] == "env":
    print((me / "version").read_text())
elif words[:2] == ["list", "-deps"]:
    print("go: downloading k8s.io/kubernetes v1.36.3", file=sys.stderr)
    print("fmt", "os", "k8s.io/kubernetes", sep="\\n")
elif words[:2] == ["list", "-m"]:
    print(me / "kwok")
elif words[0] == "build":
    failure = me / "failure"
    if failure.exists() and words[-1] == failure.read_text().split()[0]:
        print(*failure.read_text().split()[1:])
        sys.exit(1)
    print("k8s.io/api/core/v1")
    assert os.environ["CGO_ENABLED"] == "0" and "-trimpath" in words
    pathlib.Path(words[words.index("-o") + 1]).write_text(f"program of {{words[-1]}}")
"""


class FakeGo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "go").write_text(FAKE.format(python=sys.executable))
        (folder / "go").chmod(0o755)
        self.is_version("go1.26.8")
        for kind in ("node/fast", "node/heartbeat-with-lease", "pod/fast"):
            stage = folder / "kwok" / "kustomize" / "stage" / kind
            stage.mkdir(parents=True)
            (stage / f"{kind.replace('/', '-')}.yaml").write_text("kind: Stage")
            (stage / "kustomization.yaml").write_text("kind: Kustomization")

    def is_version(self, version: str) -> None:
        (self.folder / "version").write_text(version)

    def fails(self, package: str, message: str) -> None:
        (self.folder / "failure").write_text(f"{package} {message}")

    def works(self) -> None:
        (self.folder / "failure").unlink()

    def built(self) -> list[str]:
        """Packages built since the last call."""
        asked = self.folder / "asked"
        lines = asked.read_text().splitlines() if asked.exists() else []
        asked.unlink(missing_ok=True)
        return [line.split()[1] for line in lines if line.startswith("build")]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", str(fake.folder), prepend=os.pathsep)
    return fake


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def progress(output: io.StringIO) -> Progress:
    return Progress(output)


ALL = [".", "sigs.k8s.io/kwok/cmd/kwok", "./dns", "./pause"]


def test_second_build_uses_cache(go: FakeGo, cache: Path, progress: Progress, output: io.StringIO):
    programs = build_engine(cache, progress)
    assert go.built() == ALL
    assert programs.kubernetes.read_text() == "program of ."
    assert sorted(file.name for file in programs.stages.iterdir()) == [
        "node-fast.yaml", "node-heartbeat-with-lease.yaml", "pod-fast.yaml",
    ]  # fmt: skip
    assert build_engine(cache, progress) == programs == find_built(cache)
    assert go.built() == []
    lines = output.getvalue().splitlines()
    assert lines[0] == "building Kubernetes v1.36.3 with Go 1.26.8; later starts use the cached build"
    assert [line.partition(":")[0] for line in lines[1:-1]] == [f"step {number} of 5" for number in range(1, 6)]
    assert lines[-1].startswith("built in ")


def test_interrupted_build_resumes(go: FakeGo, cache: Path, progress: Progress):
    go.fails("./dns", "signal: killed")
    with pytest.raises(Refused):
        build_engine(cache, progress)
    assert go.built() == ALL[:3]
    assert find_built(cache) is None
    go.works()
    build_engine(cache, progress)
    assert go.built() == ALL[2:]


@pytest.mark.parametrize("harm", ["no manifest", "missing", "short", "altered", "broken manifest"])
def test_incomplete_build_is_rebuilt(harm: str, go: FakeGo, cache: Path, progress: Progress):
    folder = build_engine(cache, progress).folder
    match harm:
        case "no manifest":
            (folder / MANIFEST_FILE).unlink()
        case "missing":
            (folder / "kwok").unlink()
        case "short":
            (folder / "kubernetes").write_text("pro")
        case "altered":
            # Of the same size.
            (folder / "kubernetes").write_text("Program of .")
        case _:
            (folder / MANIFEST_FILE).write_text("{")
    assert find_built(cache) is None
    go.built()
    assert build_engine(cache, progress).kubernetes.read_text() == "program of ."
    assert go.built() == ALL


@pytest.mark.usefixtures("go")
def test_manifest_has_sizes_and_digests_of_all_files(cache: Path, progress: Progress):
    folder = build_engine(cache, progress).folder
    manifest = msgspec.json.decode((folder / MANIFEST_FILE).read_bytes(), type=builder.BuildManifest)
    assert manifest.go == "1.26.8"
    known = subprocess.run(["sha256sum", folder / "pause"], capture_output=True, text=True, check=True).stdout.split()[
        0
    ]
    assert manifest.sha256["pause"] == known
    assert set(manifest.sizes) == set(manifest.sha256) == {
        "dns", "kubernetes", "kwok", "pause",
        "stages/node-fast.yaml", "stages/node-heartbeat-with-lease.yaml", "stages/pod-fast.yaml",
    }  # fmt: skip


def test_content_key_changes_with_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = content_key(builder.kubernetes_module())
    copy = tmp_path / "source"
    subprocess.run(["cp", "-r", builder.SOURCE, copy], check=True)
    monkeypatch.setattr(builder, "SOURCE", copy)
    assert content_key(builder.kubernetes_module()) == before
    (copy / "main.go").write_text((copy / "main.go").read_text() + "// changed\n")
    assert content_key(builder.kubernetes_module()) != before


@pytest.mark.parametrize(
    ("line", "reason", "next_"),
    [
        ("write /x: no space left on device", DISK_FULL, "free 6 GB"),
        ("dial tcp: lookup proxy: no such host", NETWORK_UNREACHABLE, "check the network"),
        ("main.go:7: undefined: x", BUILD_FAILED, "it resumes"),
    ],
)
def test_failed_build_shows_last_lines_and_next_step(  # noqa: PLR0917
    line: str, reason: object, next_: str, go: FakeGo, cache: Path, progress: Progress
):
    go.fails("sigs.k8s.io/kwok/cmd/kwok", line)
    with pytest.raises(Refused) as refused:
        build_engine(cache, progress)
    (problem,) = refused.value.problems
    assert problem.reason is reason
    assert problem.note.endswith(line)
    assert next_ in problem.next
    assert "building kwok" in problem.what


def test_uses_go_wheel_if_go_on_path_is_too_old(go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go.is_version("go1.19.8")
    wheel = tmp_path / "wheel"
    (wheel / "go").mkdir(parents=True)
    (wheel / "go" / "__init__.py").touch()
    newer = FakeGo(wheel / "go" / "bin")
    newer.is_version("go1.27.3")
    monkeypatch.syspath_prepend(wheel)
    found = toolchain.find_go()
    assert found == (newer.folder / "go", "1.27.3")


def test_suggests_extra_if_there_is_no_go(go: FakeGo, monkeypatch: pytest.MonkeyPatch, cache: Path, progress: Progress):
    go.is_version("devel go1.18-abc")
    monkeypatch.setitem(sys.modules, "go", None)
    with pytest.raises(Refused) as refused:
        build_engine(cache, progress)
    (problem,) = refused.value.problems
    assert problem.reason is TOOLCHAIN_MISSING
    assert problem.note == f"{go.folder / 'go'}: 1.18"
    assert problem.next == "pip install 'pincompute[go]'"
    assert not cache.exists()
