"""The parts and runtimes that come with the platform, on a cluster that exists: their images lie beside its own."""

from __future__ import annotations

from pincompute.api.names import INSTALLER
from pincompute.engine import first_runtime
from pincompute.kube.client import Client
from pincompute.kube.resource import Object
from pincompute.objects.image import parse


async def bring(client: Client, image: str, *, rolled: bool) -> None:
    await first_runtime.furnish(client, given(image, rolled=rolled), INSTALLER)


def given(image: str, *, rolled: bool) -> list[Object]:
    """Where work runs already, nothing is rolled out by itself: that is for a person to begin."""
    placed = [_placed(each, image) for each in first_runtime.given()]
    return placed if rolled else [_prepared(each) for each in placed]


def _placed(object_: Object, image: str) -> Object:
    spec = object_["spec"]
    if "sidecars" not in spec:
        return object_
    sidecars = [{**each, "image": _beside(image, each["image"])} for each in spec["sidecars"]]
    return {**object_, "spec": {**spec, "sidecars": sidecars}}


def _beside(image: str, name: str) -> str:
    """In the same folder of the same registry."""
    own = parse(image)
    folder = own.path.rpartition("/")[0]
    return "/".join(each for each in (own.host, folder, name) if each)


def _prepared(object_: Object) -> Object:
    spec = {name: value for name, value in object_["spec"].items() if name != "roll"}
    return {**object_, "spec": spec}
