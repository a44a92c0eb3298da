"""Endpoints of configuration bundles: contents of files, versions, the current one, and projects that may read them."""

from __future__ import annotations

from aiohttp import web
from msgspec import json

from pincompute.admission.authorization import Permission
from pincompute.api.config_bundle import (
    ConfigBundle,
    ConfigContent,
    ConfigFile,
    ConfigPointer,
    ConfigShares,
    PublishConfig,
    PublishedConfig,
)
from pincompute.base.reasons import (
    CONFIG_IN_USE,
    CONFIG_INVALID,
    CONFIG_LIMIT,
    CONFIG_STORE_FULL,
    CONFIG_STORE_MISSING,
    CONFIG_STORE_UNAVAILABLE,
    CONFIG_UNKNOWN,
    DOCUMENT_INVALID,
)
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import CALLER, requires
from pincompute.desk.http.endpoint import TextBody, endpoint
from pincompute.desk.http.path_parameters import path_number, path_word
from pincompute.desk.http.requests import call_context, decode_body, request_body
from pincompute.desk.http.responses import json_response

CONTENT = TextBody("application/octet-stream", "The content of a file of a configuration bundle.")
_STORE = (CONFIG_STORE_MISSING, CONFIG_STORE_UNAVAILABLE)
_DIGEST = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
_FILES = PublishConfig(files=[ConfigFile(path="flags.json", digest=_DIGEST, size=5)])


class ConfigRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self) -> list[web.RouteDef]:
        bundles, contents = "/v1/projects/{project}/config", "/v1/projects/{project}/config-contents/{digest}"
        return [
            web.get(bundles, self.get_bundles),
            web.get(f"{bundles}/{{bundle}}", self.get_bundle),
            web.delete(f"{bundles}/{{bundle}}", self.remove_bundle),
            web.post(f"{bundles}/{{bundle}}/versions", self.publish_bundle),
            web.get(f"{bundles}/{{bundle}}/versions/{{bundle_version}}", self.get_version),
            web.put(f"{bundles}/{{bundle}}/pointer", self.put_pointer),
            web.put(f"{bundles}/{{bundle}}/shares", self.put_shares),
            web.put(contents, self.upload_content),
            web.get(contents, self.download_content),
        ]

    @requires(Permission.VIEW)
    @endpoint(response=list[ConfigBundle], reasons=_STORE)
    async def get_bundles(self, request: web.Request) -> web.StreamResponse:
        """The configuration bundles of a project."""
        return json_response(await self._desk.config_bundles.store.list_bundles(path_word(request, "project")))

    @requires(Permission.VIEW)
    @endpoint(response=ConfigBundle, reasons=(CONFIG_UNKNOWN, CONFIG_INVALID, *_STORE))
    async def get_bundle(self, request: web.Request) -> web.StreamResponse:
        """A configuration bundle with its versions."""
        return json_response(await self._desk.config_bundles.store.read_bundle(*_project_and_bundle(request)))

    @requires(Permission.DEPLOY)
    @endpoint(
        response=PublishedConfig,
        request_body=PublishConfig,
        example=_FILES,
        reasons=(DOCUMENT_INVALID, CONFIG_INVALID, CONFIG_LIMIT, CONFIG_STORE_FULL, *_STORE),
    )
    async def publish_bundle(self, request: web.Request) -> web.StreamResponse:
        """Publish a version of a configuration bundle, or list the contents that must be uploaded first."""
        project, name = _project_and_bundle(request)
        asked = decode_body(request, json.Decoder(PublishConfig).decode, "invalid bundle")
        published = await self._desk.config_bundles.publish_version(project, name, asked, str(request[CALLER]))
        if published.version and not published.unchanged:
            words = f"published version {published.version}, {published.digest[:12]}"
            await self._desk.audit_config(project, name, words, call_context(request))
        return json_response(published)

    @requires(Permission.VIEW)
    @endpoint(response=ConfigContent, reasons=(CONFIG_UNKNOWN, CONFIG_INVALID, *_STORE))
    async def get_version(self, request: web.Request) -> web.StreamResponse:
        """The files of a version of a configuration bundle; 0 is the current one."""
        number = path_number(request, "bundle_version")
        return json_response(await self._desk.config_bundles.store.read_version(*_project_and_bundle(request), number))

    @requires(Permission.CHANGE)
    @endpoint(
        response=ConfigBundle,
        request_body=ConfigPointer,
        example=ConfigPointer(version=1),
        reasons=(DOCUMENT_INVALID, CONFIG_INVALID, CONFIG_UNKNOWN, CONFIG_STORE_FULL, *_STORE),
    )
    async def put_pointer(self, request: web.Request) -> web.StreamResponse:
        """Make a version of a configuration bundle the current one."""
        project, name = _project_and_bundle(request)
        asked = decode_body(request, json.Decoder(ConfigPointer).decode, "invalid version")
        rolled = await self._desk.config_bundles.store.point(project, name, asked.version)
        await self._desk.audit_config(project, name, f"rolled to version {asked.version}", call_context(request))
        return json_response(rolled)

    @requires(Permission.CONFIGURE)
    @endpoint(
        response=ConfigBundle,
        request_body=ConfigShares,
        example=ConfigShares(projects=["search"]),
        reasons=(DOCUMENT_INVALID, CONFIG_INVALID, CONFIG_UNKNOWN, CONFIG_STORE_FULL, *_STORE),
    )
    async def put_shares(self, request: web.Request) -> web.StreamResponse:
        """Let exactly these other projects read a configuration bundle."""
        project, name = _project_and_bundle(request)
        asked = decode_body(request, json.Decoder(ConfigShares).decode, "invalid projects")
        shared = await self._desk.config_bundles.store.share(project, name, asked)
        words = f"shared with {', '.join(asked.projects) or 'no project'}"
        await self._desk.audit_config(project, name, words, call_context(request))
        return json_response(shared)

    @requires(Permission.DELETE)
    @endpoint(status=204, reasons=(CONFIG_UNKNOWN, CONFIG_INVALID, CONFIG_IN_USE, *_STORE))
    async def remove_bundle(self, request: web.Request) -> web.StreamResponse:
        """Delete a configuration bundle that no workload has, with all of its versions."""
        project, name = _project_and_bundle(request)
        await self._desk.config_bundles.delete_bundle(project, name)
        await self._desk.audit_config(project, name, "deleted", call_context(request))
        return web.Response(status=204)

    @requires(Permission.DEPLOY)
    @endpoint(
        status=204,
        request_body=CONTENT,
        example="hello",
        reasons=(DOCUMENT_INVALID, CONFIG_INVALID, CONFIG_LIMIT, CONFIG_STORE_FULL, *_STORE),
    )
    async def upload_content(self, request: web.Request) -> web.StreamResponse:
        """Upload the content of a file, before the version of a configuration bundle that has it."""
        await self._desk.config_bundles.store.put_content(
            path_word(request, "project"), path_word(request, "digest"), request_body(request)
        )
        return web.Response(status=204)

    @requires(Permission.VIEW)
    @endpoint(response=CONTENT, reasons=(CONFIG_UNKNOWN, CONFIG_INVALID, *_STORE))
    async def download_content(self, request: web.Request) -> web.StreamResponse:
        """The content of a file of a configuration bundle."""
        content = await self._desk.config_bundles.store.read_content(
            path_word(request, "project"), path_word(request, "digest")
        )
        # It was written by a user: a browser must not show it as a page.
        headers = {"X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment"}
        return web.Response(body=content, content_type="application/octet-stream", headers=headers)


def _project_and_bundle(request: web.Request) -> tuple[str, str]:
    return path_word(request, "project"), path_word(request, "bundle")
