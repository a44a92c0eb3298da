"""Types what an answer of `pin why` says: a command of `pin` or kubectl, or an edit of the workload's file."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from bench.why.edits import edited_fields
from bench.why.objects import RESOURCES
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object

if TYPE_CHECKING:
    from bench.why.scene import Scene

_ACTS = ("rollback", "rerun", "resume", "restart", "scale", "delete", "edit")
_DELETION_PATIENCE_S = 30.0
_FOLLOWED = ("edit", "rollback", "scale", "restart", "rerun")
"""Commands that wait for the result, which is what the scene watches itself."""
_CREATED = re.compile(r"kubectl create (configmap|secret generic) (\S+) -n \S+")
_APPLIED = re.compile(r"^echo (?P<content>'.+') \| kubectl (?P<verb>create|replace --force) -f -$")


async def type_next(scene: Scene, next_: str) -> bool:
    """Runs the first command that changes something, or edits the file. False if nothing is to be typed."""
    if applied := _APPLIED.match(next_):
        await _apply(scene, json.loads(shlex.split(applied["content"])[0]), replace=applied["verb"] != "create")
        return True
    for command in re.split(r", or: |; |, and: | or: ", next_):
        words = shlex.split(command) if command.startswith("pin ") else []
        if words and words[1] in _ACTS:
            no_wait = ["--no-wait"] if words[1] in _FOLLOWED else []
            code, output = await scene.cluster.pin(*words[1:], *no_wait)
            if code:
                print(f"{scene.name}: {command}: {output}", flush=True)
            return code == 0
        if found := _CREATED.search(command):
            kind = "ConfigMap" if found[1] == "configmap" else "Secret"
            await scene.create({"kind": kind, "name": found[2]})
            return True
    spec = edited_fields(scene.spec, next_)
    if spec is not None:
        await scene.cluster.write(scene.name, **spec)
    return spec is not None


async def _apply(scene: Scene, content: Object, *, replace: bool) -> None:
    """Creates an object, after the one with its name has gone if it is replaced, as `kubectl replace --force` does."""
    resource, metadata, client = RESOURCES[content["kind"]], content["metadata"], scene.cluster.client
    if replace:
        await client.delete(resource, metadata["name"], metadata["namespace"])
        with suppress(NotFound):
            async with asyncio.timeout(_DELETION_PATIENCE_S):
                while True:
                    await client.get(resource, metadata["name"], metadata["namespace"])
                    await asyncio.sleep(1)
    await scene.create({"kind": content["kind"], "name": metadata["name"], "spec": content["spec"]})
