"""Images that were made elsewhere come into a real registry, whole; what is no image is refused with words."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from image_files import laid_out, layer, saved, sha256, tar, write
from pincompute.base.context import Context
from pincompute.base.problem import Refused
from pincompute.base.reasons import IMAGE_INVALID, IMAGE_NAME_INVALID, REGISTRY_FAILED, Reason
from pincompute.engine.images.archive import opened
from pincompute.engine.images.loading import Loaded, load, send
from pincompute.engine.images.named import Named
from pincompute.kube.registry import Registry, exists, known, registry_of
from pincompute.objects.image import parse


async def bring(images: Context, source: Path, *names: str) -> list[Loaded]:
    async with registry_of(images) as registry:
        return await load(registry, source, names)


def file(folder: Path, content: bytes) -> Path:
    (folder / "image").write_bytes(content)
    return folder / "image"


async def test_what_docker_saved_is_loaded_and_only_new_layers_are_sent(images: Context, tmp_path: Path):
    (first,) = await bring(images, file(tmp_path, tar(saved("a", "b", names=("saved:1",)))))
    (again,) = await bring(images, file(tmp_path, tar(saved("a", "b", names=("saved:1",)))))
    (more,) = await bring(images, file(tmp_path, tar(saved("a", "b", "c", names=("saved:2",)))))
    assert [(each.name, each.layers, each.new) for each in (first, again, more)] == [
        ("saved:1", 2, 2),
        ("saved:1", 2, 0),
        ("saved:2", 3, 1),
    ]
    assert more._replace(size=12_345_678).text() == "saved:2  12.3 MB  3 layers, 1 new"
    async with registry_of(images) as registry:
        manifest = await registry.manifest(parse("saved:2"))
    assert [each["digest"] for each in manifest["layers"]] == [sha256(layer(text)) for text in "abc"]


async def test_a_packed_archive_and_packed_layers_are_read_as_well(images: Context, tmp_path: Path):
    packed = saved("a", names=("packed:1",), packed=True)
    (loaded,) = await bring(images, file(tmp_path, gzip.compress(tar(packed))))
    async with registry_of(images) as registry:
        manifest = await registry.manifest(parse("packed:1"))
    assert (loaded.name, loaded.new) == ("packed:1", 1)
    assert [(each["mediaType"], each["digest"]) for each in manifest["layers"]] == [
        ("application/vnd.oci.image.layer.v1.tar+gzip", sha256(packed["0/layer.tar"]))
    ]


async def test_an_oci_layout_keeps_its_digests_as_folder_and_as_archive(images: Context, tmp_path: Path):
    files = laid_out("a", "b", name="laid:1")
    (as_folder,) = await bring(images, write(tmp_path / "layout", files))
    (as_archive,) = await bring(images, file(tmp_path, tar({f"./{name}": body for name, body in files.items()})))
    assert (as_folder.name, as_folder.new, as_archive.new) == ("laid:1", 2, 0)
    async with registry_of(images) as registry:
        manifest = await registry.manifest(parse("laid:1"))
    assert all(f"blobs/{each['digest'].replace(':', '/')}" in files for each in manifest["layers"])


async def test_of_an_image_for_several_machines_ours_is_taken(images: Context, tmp_path: Path):
    files = laid_out("a", name="several:1", platforms=("plan9/mips", "linux/amd64", "linux/arm64"))
    (loaded,) = await bring(images, file(tmp_path, tar(files)))
    assert loaded.name == "several:1"
    foreign = laid_out("a", platforms=("plan9/mips",))
    with pytest.raises(Refused, match="not for this machine"):
        await bring(images, file(tmp_path, tar(foreign)))


async def test_one_archive_may_hold_several_names_and_a_given_one_beats_them(images: Context, tmp_path: Path):
    both = file(tmp_path, tar(saved("a", names=("left:1", "registry.example/right:1"))))
    assert [each.name for each in await bring(images, both)] == ["left:1", "registry.example/right:1"]
    one = file(tmp_path, tar(saved("a", names=("left:1",))))
    assert [each.name for each in await bring(images, one, "team/given:2")] == ["team/given:2"]
    assert [each.new for each in await bring(images, one, "team/given:3", "team/given:4")] == [0, 0]
    assert await exists(images, "left:1")
    assert await exists(images, "localhost/left:1")
    assert await exists(images, "registry.example/right:1")
    assert not await exists(images, "left:2")
    assert not await exists(images, "no such name")
    assert {"left:1", "*/right:1", "team/given:2", "team/given:4"} <= set(await known(images))


NO_JSON = {**saved("a"), "manifest.json": b"[{"}
NO_LAYER = {name: body for name, body in saved("a").items() if name != "0/layer.tar"}
OTHER_LAYER = {**saved("a"), "0/layer.tar": layer("b")}
FEWER_LAYERS = {**saved("a", "b"), "config.json": saved("a")["config.json"]}
CUT_BLOB = {name: body[:-1] if body[:2] == b"\x1f\x8b" else body for name, body in laid_out("a").items()}
STRANGE_DIGEST = {**laid_out("a"), "index.json": laid_out("a")["index.json"].replace(b"sha256:", b"../../etc/")}


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (b"", IMAGE_INVALID, "an empty file"),
        (b"FROM debian\n", IMAGE_INVALID, "a text file"),
        (b"\x7fELF\0\0", IMAGE_INVALID, "a program"),
        (b"PK\x03\x04", IMAGE_INVALID, "a zip archive"),
        (b"\x28\xb5\x2f\xfd\0", IMAGE_INVALID, "zstd"),
        (gzip.compress(b"hello"), IMAGE_INVALID, "a text file"),
        (gzip.compress(tar(saved("a")))[:-20], IMAGE_INVALID, "cut off"),
        (tar(saved("a" * 3000))[:2000], IMAGE_INVALID, "cut off"),
        (tar({"notes.txt": b"hello"}), IMAGE_INVALID, "neither manifest.json nor index.json"),
        (tar(NO_JSON), IMAGE_INVALID, "manifest.json is not what it should be"),
        (tar(NO_LAYER), IMAGE_INVALID, "lacks 0/layer.tar"),
        (tar(OTHER_LAYER), IMAGE_INVALID, "damaged"),
        (tar(FEWER_LAYERS), IMAGE_INVALID, "speaks of 1 layers, and there are 2"),
        (tar(CUT_BLOB), IMAGE_INVALID, "damaged"),
        (tar(STRANGE_DIGEST), IMAGE_INVALID, "not a sha256 digest"),
        (tar(saved("a", names=())), IMAGE_NAME_INVALID, "no name of its own"),
        (tar(laid_out("a", name="dev")), IMAGE_NAME_INVALID, "no name of its own"),
        (tar(saved("a", names=("My Image",))), IMAGE_NAME_INVALID, "'My Image'"),
    ],
)
async def test_what_is_no_image_is_refused_with_what_it_looks_like(
    images: Context, tmp_path: Path, content: bytes, reason: Reason, words: str
):
    source = file(tmp_path, content)
    with pytest.raises(Refused) as refused:
        await bring(images, source)
    (problem,) = refused.value.problems
    assert problem.reason is reason
    assert words in problem.what
    assert problem.where.file == str(source)
    assert not await exists(images, "hello:dev")


async def test_a_folder_of_nothing_and_a_file_that_is_not_there_are_refused(images: Context, tmp_path: Path):
    with pytest.raises(Refused, match="neither"):
        await bring(images, tmp_path)
    with pytest.raises(Refused, match="no such file"):
        await bring(images, tmp_path / "absent.tar")


async def test_a_crafted_folder_does_not_reach_files_outside_it(images: Context, tmp_path: Path):
    (tmp_path / "secret").write_bytes(layer("a"))
    folder = write(tmp_path / "folder", saved("a"))
    (folder / "manifest.json").write_bytes(saved("a")["manifest.json"].replace(b"0/layer.tar", b"../secret"))
    with pytest.raises(Refused, match=r"lacks ../secret"):
        await bring(images, folder)


@pytest.mark.parametrize("name", ["my image", "hello@sha256:" + "0" * 64])
async def test_a_name_that_cannot_be_is_refused_before_anything_is_sent(images: Context, tmp_path: Path, name: str):
    with pytest.raises(Refused) as refused:
        await bring(images, file(tmp_path, tar(saved("never sent"))), name)
    assert refused.value.problems[0].reason is IMAGE_NAME_INVALID
    async with registry_of(images) as registry:
        assert not await registry.has_blob("library/hello", sha256(layer("never sent")))


async def test_a_registry_that_is_down_or_not_ours_is_told_in_words(images: Context, tmp_path: Path):
    source = file(tmp_path, tar(saved("a")))
    with pytest.raises(Refused, match="does not answer") as refused:
        await bring(Context(name="t", desk="", token="", kubeconfig="", images="127.0.0.1:1",
                            certificates=images.certificates), source)  # fmt: skip
    assert refused.value.problems[0].reason is REGISTRY_FAILED
    with pytest.raises(Refused, match="has no registry"):
        await bring(Context(name="t", desk="", token="", kubeconfig=""), source)
    with pytest.raises(Refused, match="cannot be read"):
        async with Registry(images.images, tmp_path):
            pass


async def test_of_one_archive_each_image_says_which_it_is(images: Context, tmp_path: Path):
    source = file(tmp_path, tar(laid_out("a", "b")))
    found = {}
    async with registry_of(images) as registry:
        for name in ("part:1", "part:2"):
            with opened(source) as archive:
                await send(registry, Named(archive, name), [name])
            manifest = await registry.manifest(parse(name))
            found[name] = manifest["config"]["digest"]
            with opened(source) as archive, Named(archive, name).open(_blob(found[name])) as config:
                assert msgspec.json.decode(config.read())["config"]["Env"][-1] == f"PINCOMPUTE_IMAGE={name}"
    assert len(set(found.values())) == 2


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
