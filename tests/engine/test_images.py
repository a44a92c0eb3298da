"""Loading image archives into a real registry, and rejecting files that are no images."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from image_files import docker_save_files, layer, oci_layout_files, sha256, tar, write_files
from pincompute.base.platform_context import Context
from pincompute.base.problem import Refused
from pincompute.base.reasons import IMAGE_INVALID, IMAGE_NAME_INVALID, REGISTRY_FAILED, Reason
from pincompute.engine.images.archive import open_archive
from pincompute.engine.images.loading import LoadedImage, load_images, send_images
from pincompute.engine.images.named_archive import NamedArchive
from pincompute.kube.image_registry import image_exists, list_known_images, registry_for
from pincompute.objects.image import parse_image


async def load_from_file(images: Context, source: Path, *names: str) -> list[LoadedImage]:
    async with registry_for(images) as registry:
        return await load_images(registry, source, names)


def file(folder: Path, content: bytes) -> Path:
    (folder / "image").write_bytes(content)
    return folder / "image"


async def test_docker_archive_uploads_new_layers_only(images: Context, tmp_path: Path):
    (first,) = await load_from_file(images, file(tmp_path, tar(docker_save_files("a", "b", names=("saved:1",)))))
    (again,) = await load_from_file(images, file(tmp_path, tar(docker_save_files("a", "b", names=("saved:1",)))))
    (more,) = await load_from_file(images, file(tmp_path, tar(docker_save_files("a", "b", "c", names=("saved:2",)))))
    assert [(each.name, each.layers, each.new_layers) for each in (first, again, more)] == [
        ("saved:1", 2, 2),
        ("saved:1", 2, 0),
        ("saved:2", 3, 1),
    ]
    assert more._replace(size=12_345_678).text() == "saved:2  12.3 MB  3 layers, 1 new"
    async with registry_for(images) as registry:
        manifest = await registry.manifest(parse_image("saved:2"))
        assert await registry.resolve_digest(parse_image("saved:2")) == more.digest
    assert [each["digest"] for each in manifest["layers"]] == [sha256(layer(text)) for text in "abc"]


async def test_gzipped_archive_and_layers_are_read(images: Context, tmp_path: Path):
    gzipped = docker_save_files("a", names=("gzipped:1",), gzipped=True)
    (loaded,) = await load_from_file(images, file(tmp_path, gzip.compress(tar(gzipped))))
    async with registry_for(images) as registry:
        manifest = await registry.manifest(parse_image("gzipped:1"))
    assert (loaded.name, loaded.new_layers) == ("gzipped:1", 1)
    assert [(each["mediaType"], each["digest"]) for each in manifest["layers"]] == [
        ("application/vnd.oci.image.layer.v1.tar+gzip", sha256(gzipped["0/layer.tar"]))
    ]


async def test_oci_layout_keeps_its_digests(images: Context, tmp_path: Path):
    files = oci_layout_files("a", "b", name="laid:1")
    (as_folder,) = await load_from_file(images, write_files(tmp_path / "layout", files))
    (as_archive,) = await load_from_file(
        images, file(tmp_path, tar({f"./{name}": body for name, body in files.items()}))
    )
    assert (as_folder.name, as_folder.new_layers, as_archive.new_layers) == ("laid:1", 2, 0)
    async with registry_for(images) as registry:
        manifest = await registry.manifest(parse_image("laid:1"))
    assert all(f"blobs/{each['digest'].replace(':', '/')}" in files for each in manifest["layers"])


async def test_selects_manifest_for_this_machine(images: Context, tmp_path: Path):
    files = oci_layout_files("a", name="several:1", platforms=("plan9/mips", "linux/amd64", "linux/arm64"))
    (loaded,) = await load_from_file(images, file(tmp_path, tar(files)))
    assert loaded.name == "several:1"
    foreign = oci_layout_files("a", platforms=("plan9/mips",))
    with pytest.raises(Refused, match="does not support this machine"):
        await load_from_file(images, file(tmp_path, tar(foreign)))


async def test_given_names_replace_names_in_archive(images: Context, tmp_path: Path):
    both = file(tmp_path, tar(docker_save_files("a", names=("left:1", "registry.example/right:1"))))
    assert [each.name for each in await load_from_file(images, both)] == ["left:1", "registry.example/right:1"]
    one = file(tmp_path, tar(docker_save_files("a", names=("left:1",))))
    assert [each.name for each in await load_from_file(images, one, "team/given:2")] == ["team/given:2"]
    assert [each.new_layers for each in await load_from_file(images, one, "team/given:3", "team/given:4")] == [0, 0]
    assert await image_exists(images, "left:1")
    assert await image_exists(images, "localhost/left:1")
    assert await image_exists(images, "registry.example/right:1")
    assert not await image_exists(images, "left:2")
    assert not await image_exists(images, "no such name")
    assert {"left:1", "*/right:1", "team/given:2", "team/given:4"} <= set(await list_known_images(images))


NO_JSON = {**docker_save_files("a"), "manifest.json": b"[{"}
NO_LAYER = {name: body for name, body in docker_save_files("a").items() if name != "0/layer.tar"}
OTHER_LAYER = {**docker_save_files("a"), "0/layer.tar": layer("b")}
FEWER_LAYERS = {**docker_save_files("a", "b"), "config.json": docker_save_files("a")["config.json"]}
TRUNCATED_BLOB = {name: body[:-1] if body[:2] == b"\x1f\x8b" else body for name, body in oci_layout_files("a").items()}
INVALID_DIGEST = {
    **oci_layout_files("a"),
    "index.json": oci_layout_files("a")["index.json"].replace(b"sha256:", b"../../etc/"),
}


@pytest.mark.parametrize(
    ("content", "reason", "message"),
    [
        (b"", IMAGE_INVALID, "an empty file"),
        (b"FROM debian\n", IMAGE_INVALID, "a text file"),
        (b"\x7fELF\0\0", IMAGE_INVALID, "a program"),
        (b"PK\x03\x04", IMAGE_INVALID, "a zip archive"),
        (b"\x28\xb5\x2f\xfd\0", IMAGE_INVALID, "zstd"),
        (gzip.compress(b"hello"), IMAGE_INVALID, "a text file"),
        (gzip.compress(tar(docker_save_files("a")))[:-20], IMAGE_INVALID, "truncated"),
        (tar(docker_save_files("a" * 3000))[:2000], IMAGE_INVALID, "truncated"),
        (tar({"notes.txt": b"hello"}), IMAGE_INVALID, "no manifest.json and no index.json"),
        (tar(NO_JSON), IMAGE_INVALID, "manifest.json is not valid"),
        (tar(NO_LAYER), IMAGE_INVALID, "refers to 0/layer.tar"),
        (tar(OTHER_LAYER), IMAGE_INVALID, "damaged"),
        (tar(FEWER_LAYERS), IMAGE_INVALID, "lists 1 layers, the archive has 2"),
        (tar(TRUNCATED_BLOB), IMAGE_INVALID, "damaged"),
        (tar(INVALID_DIGEST), IMAGE_INVALID, "not a sha256 digest"),
        (tar(docker_save_files("a", names=())), IMAGE_NAME_INVALID, "has no name for the image"),
        (tar(oci_layout_files("a", name="dev")), IMAGE_NAME_INVALID, "has no name for the image"),
        (tar(docker_save_files("a", names=("My Image",))), IMAGE_NAME_INVALID, "'My Image'"),
    ],
)
async def test_rejects_other_files_with_their_format(
    images: Context, tmp_path: Path, content: bytes, reason: Reason, message: str
):
    source = file(tmp_path, content)
    with pytest.raises(Refused) as refused:
        await load_from_file(images, source)
    (problem,) = refused.value.problems
    assert problem.reason is reason
    assert message in problem.what
    assert problem.where.file == str(source)
    assert not await image_exists(images, "hello:dev")


async def test_rejects_empty_folder_and_missing_file(images: Context, tmp_path: Path):
    with pytest.raises(Refused, match=r"no manifest\.json"):
        await load_from_file(images, tmp_path)
    with pytest.raises(Refused, match="no such file"):
        await load_from_file(images, tmp_path / "absent.tar")


async def test_crafted_folder_cannot_read_outside_files(images: Context, tmp_path: Path):
    (tmp_path / "secret").write_bytes(layer("a"))
    folder = write_files(tmp_path / "folder", docker_save_files("a"))
    (folder / "manifest.json").write_bytes(
        docker_save_files("a")["manifest.json"].replace(b"0/layer.tar", b"../secret")
    )
    with pytest.raises(Refused, match=r"refers to ../secret"):
        await load_from_file(images, folder)


@pytest.mark.parametrize("name", ["my image", "hello@sha256:" + "0" * 64])
async def test_rejects_invalid_name_before_upload(images: Context, tmp_path: Path, name: str):
    with pytest.raises(Refused) as refused:
        await load_from_file(images, file(tmp_path, tar(docker_save_files("never sent"))), name)
    assert refused.value.problems[0].reason is IMAGE_NAME_INVALID
    async with registry_for(images) as registry:
        assert not await registry.has_blob("library/hello", sha256(layer("never sent")))


async def test_reports_unreachable_or_untrusted_registry(images: Context, tmp_path: Path):
    source = file(tmp_path, tar(docker_save_files("a")))
    with pytest.raises(Refused, match="does not answer") as refused:
        await load_from_file(Context(name="t", desk="", token="", kubeconfig="", images="127.0.0.1:1",
                            certificates=images.certificates), source)  # fmt: skip
    assert refused.value.problems[0].reason is REGISTRY_FAILED
    with pytest.raises(Refused, match="has no image registry") as refused:
        await load_from_file(Context(name="t", desk="", token="", kubeconfig=""), source)
    assert "by its owner" in refused.value.problems[0].note
    with pytest.raises(Refused, match="cannot read its certificate authority"):
        async with registry_for(msgspec.structs.replace(images, certificates=str(tmp_path))):
            pass


async def test_named_archive_adds_name_to_environment(images: Context, tmp_path: Path):
    source = file(tmp_path, tar(oci_layout_files("a", "b")))
    digests = {}
    async with registry_for(images) as registry:
        for name in ("part:1", "part:2"):
            with open_archive(source) as archive:
                await send_images(registry, NamedArchive(archive, name), [name])
            manifest = await registry.manifest(parse_image(name))
            digests[name] = manifest["config"]["digest"]
            with open_archive(source) as archive, NamedArchive(archive, name).open(_blob(digests[name])) as config:
                assert msgspec.json.decode(config.read())["config"]["Env"][-1] == f"PINCOMPUTE_IMAGE={name}"
    assert len(set(digests.values())) == 2


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
