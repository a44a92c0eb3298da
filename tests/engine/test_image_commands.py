"""`pin image`, as typed: against a real registry, without a cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from image_files import laid_out, saved, tar, write
from pincompute.base.context import Context, write_context
from pincompute.engine.images import building, own_image
from pincompute.engine.progress import Progress
from pincompute.main import group


@pytest.fixture
def state(images: Context, tmp_path: Path) -> Path:
    """Where commands find the platform of the registry, under the name that they take for granted."""
    write_context(tmp_path / "state", msgspec.structs.replace(images, name="main"))
    return tmp_path / "state"


def typed(state: Path, *words: str) -> Result:
    return CliRunner().invoke(
        group(), ["image", *words], env={"PIN_STATE": str(state), "PIN_CACHE": str(state / "cache")}
    )


def test_a_file_is_loaded_and_listed(state: Path, tmp_path: Path):
    file = tmp_path / "image.tar"
    file.write_bytes(tar(saved("typed", names=("typed:1",))))
    result = typed(state, "load", str(file))
    assert (result.stdout, result.exit_code) == ("typed:1  0.0 MB  1 layer, 1 new\n", 0)
    assert "typed:1\n" in typed(state, "list").stdout


def test_a_layout_is_loaded_under_the_name_that_is_given(state: Path, tmp_path: Path):
    folder = write(tmp_path / "layout", laid_out("typed", name=""))
    refused = typed(state, "load", str(folder))
    assert f"next: pin image load {folder} --as NAME:TAG" in refused.stderr
    assert typed(state, "load", str(folder), "--as", "team/typed:2").stdout.startswith("team/typed:2 ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["load", "absent.tar"], "absent.tar: there is no such file or folder  [ImageInvalid]"),
        (["load", __file__], "not an image: it looks like a text file  [ImageInvalid]"),
        (["load", __file__, "--name", "elsewhere"], "there is no platform 'elsewhere'"),
        (["list", "--name", "elsewhere"], "there is no platform 'elsewhere'"),
    ],
)
def test_mistakes_are_told_in_words(state: Path, words: list[str], said: str):
    result = typed(state, *words)
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""


def test_only_root_builds_and_others_hear_what_they_can_do(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "Containerfile").write_text("FROM scratch\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = typed(state, "load", str(tmp_path))
    assert result.exit_code == 1
    assert "only root can build images" in result.stderr
    assert "docker save IMAGE" in result.stderr


def test_a_folder_whose_name_no_image_can_have_is_not_even_built(state: Path, tmp_path: Path):
    folder = write(tmp_path / "My App", {"Containerfile": b"FROM scratch\n"})
    assert "'My App:dev' cannot be the name of an image" in typed(state, "load", str(folder)).stderr


def test_the_platforms_own_image_is_built_again_only_when_its_content_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = own_image.WHOLE
    for name in ("Containerfile", "pyproject.toml", whole.requirements, "src/pincompute/main.py", "docs/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    key = own_image.content_key(tmp_path, whole)
    (tmp_path / "docs/a.md").write_text("changed")
    (tmp_path / "src/pincompute/__pycache__").mkdir()
    (tmp_path / "src/pincompute/__pycache__/main.pyc").write_text("compiled")
    assert own_image.content_key(tmp_path, whole) == key
    monkeypatch.setenv("PIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(own_image, "ROOT", tmp_path)
    built = building.images() / f"pincompute-{key}.tar"
    built.parent.mkdir(parents=True)
    built.touch()
    assert own_image.archive(Progress(), whole) == built
    (tmp_path / "src/pincompute/main.py").rename(tmp_path / "src/pincompute/other.py")
    assert own_image.content_key(tmp_path, whole) != key
