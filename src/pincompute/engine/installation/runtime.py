"""Creates the bundled sidecars and runtimes on an existing cluster, with images from the registry of its platform."""

from __future__ import annotations

from pincompute.api.names import INSTALLER
from pincompute.engine import first_runtime
from pincompute.kube.client import Client
from pincompute.kube.resource import Object
from pincompute.objects.image import parse_image


async def install_runtimes(client: Client, image: str, *, rolled: bool) -> None:
    await first_runtime.create_runtimes(client, runtime_objects(image, rolled=rolled), INSTALLER)


def runtime_objects(image: str, *, rolled: bool) -> list[Object]:
    """The bundled objects. Unless `rolled`, runtimes get no `roll`, so that an administrator starts their rollout."""
    placed = [_with_images(each, image) for each in first_runtime.bundled_runtime_objects()]
    return placed if rolled else [_without_roll(each) for each in placed]


def _with_images(object_: Object, image: str) -> Object:
    spec = object_["spec"]
    placed = {
        field: [{**each, "image": _sibling_image(image, each["image"])} for each in spec[field]]
        for field in first_runtime.CONTAINER_FIELDS
        if field in spec
    }
    return {**object_, "spec": {**spec, **placed}}


def _sibling_image(image: str, name: str) -> str:
    """An image name in the folder and registry of another image."""
    own = parse_image(image)
    folder = own.path.rpartition("/")[0]
    return "/".join(each for each in (own.host, folder, name) if each)


def _without_roll(object_: Object) -> Object:
    spec = {name: value for name, value in object_["spec"].items() if name != "roll"}
    return {**object_, "spec": spec}
