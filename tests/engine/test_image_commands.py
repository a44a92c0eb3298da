"""`pin image` against a real registry, without a cluster."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from image_files import docker_save_files, oci_layout_files, tar, write_files
from pincompute.base.platform_context import Context, write_context
from pincompute.base.progress import Progress
from pincompute.engine.images import builder, own_image
from pincompute.kube.image_registry import registry_for
from pincompute.main import command_group


@pytest.fixture
def state(images: Context, tmp_path: Path) -> Path:
    """State folder with the registry's platform under the default name."""
    write_context(tmp_path / "state", msgspec.structs.replace(images, name="main"))
    return tmp_path / "state"


def run_image_command(state: Path, *words: str) -> Result:
    return CliRunner().invoke(
        command_group(), ["image", *words], env={"PIN_STATE": str(state), "PIN_CACHE": str(state / "cache")}
    )


def test_loads_and_lists_file(state: Path, tmp_path: Path):
    file = tmp_path / "image.tar"
    file.write_bytes(tar(docker_save_files("run_image_command", names=("run_image_command:1",))))
    result = run_image_command(state, "load", str(file))
    assert (result.stdout, result.exit_code) == ("run_image_command:1  0.0 MB  1 layer, 1 new\n", 0)
    assert "run_image_command:1\n" in run_image_command(state, "list").stdout


def test_loads_layout_under_given_name(state: Path, tmp_path: Path):
    folder = write_files(tmp_path / "layout", oci_layout_files("run_image_command", name=""))
    refused = run_image_command(state, "load", str(folder))
    assert f"next: pin image load {folder} --as NAME:TAG" in refused.stderr
    assert run_image_command(state, "load", str(folder), "--as", "team/run_image_command:2").stdout.startswith(
        "team/run_image_command:2 "
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["load", "absent.tar"], "absent.tar: no such file or folder  [ImageInvalid]"),
        (["load", __file__], "not an image: it looks like a text file  [ImageInvalid]"),
        (["load", __file__, "--name", "elsewhere"], "no platform 'elsewhere'"),
        (["load", __file__, "--target", "a"], "is not a folder: --file, --build-arg and --target are for builds"),
        (["load", str(Path(__file__).parent), "--target", "a"], "has no Dockerfile: name it with --file"),
        (["load", ".", "-f", "absent"], "absent: no such file"),
        (["load", ".", "--build-arg", "A"], "'A' must be NAME=VALUE"),
        (["list", "--name", "elsewhere"], "no platform 'elsewhere'"),
    ],
)
def test_invalid_arguments_are_reported(state: Path, arguments: list[str], message: str):
    result = run_image_command(state, *arguments)
    assert result.exit_code == (2 if "Usage:" in result.stderr else 1)
    assert message in result.stderr
    assert result.stdout == ""


def test_build_needs_root(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "Containerfile").write_text("FROM scratch\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = run_image_command(state, "load", str(tmp_path))
    assert result.exit_code == 1
    assert "building an image needs root" in result.stderr
    assert "docker save IMAGE" in result.stderr


def test_rejects_folder_name_that_is_no_image_name(state: Path, tmp_path: Path):
    folder = write_files(tmp_path / "My App", {"Containerfile": b"FROM scratch\n"})
    assert "'My App:dev' is not a valid image name" in run_image_command(state, "load", str(folder)).stderr


def test_image_contains_and_is_built_with_packages_of_known_hash_only():
    install = [line for line in (own_image.ROOT / "Containerfile").read_text().splitlines() if "pip install" in line]
    assert len(install) == 3
    assert all(("--require-hashes" in line) is not ("--no-deps --no-build-isolation" in line) for line in install)
    locked = (own_image.ROOT / "requirements" / "build.txt").read_text()
    backend = tomllib.loads((own_image.ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert all(f"{each} \\\n    --hash=sha256:" in locked for each in backend)


async def test_own_image_is_rebuilt_only_if_its_content_changes(
    images: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    variant = own_image.FULL_VARIANT
    for name in ("Containerfile", "pyproject.toml", variant.requirements, "src/pincompute/main.py", "docs/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    key = own_image.content_key(tmp_path, variant)
    (tmp_path / "docs/a.md").write_text("changed")
    (tmp_path / "src/pincompute/__pycache__").mkdir()
    (tmp_path / "src/pincompute/__pycache__/main.pyc").write_text("compiled")
    assert own_image.content_key(tmp_path, variant) == key
    monkeypatch.setenv("PIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(own_image, "ROOT", tmp_path)
    built = builder.images_folder() / f"pincompute-{key}.tar"
    built.parent.mkdir(parents=True)
    built.touch()
    async with registry_for(images) as registry:
        assert await own_image.build_archive(registry, Progress(), variant) == built
    (tmp_path / "src/pincompute/main.py").rename(tmp_path / "src/pincompute/other.py")
    assert own_image.content_key(tmp_path, variant) != key
