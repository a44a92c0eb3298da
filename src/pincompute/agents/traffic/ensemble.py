"""The thin face of ZooKeeper: the few operations that serversets need. The only module that imports kazoo.

kazoo works in threads of its own; every result and every event is handed to the event loop that created the ensemble.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, NamedTuple

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import (
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
)
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import ACL, READ_ACL_UNSAFE, make_digest_acl

from pincompute.base.clock import Clock

USER = "registrar"
SESSION_TIMEOUT_S = 15.0
"""Members of a node that has died disappear after this time."""
OPERATION_TIMEOUT_S = 30.0
_MAX_RETRY_DELAY_S = 2.0
_PUT_ATTEMPTS = 5

log = structlog.get_logger()


class Unreachable(Exception):  # noqa: N818  (named by what happened)
    """The ensemble does not answer, or has ended the session. What was sent may have been done."""


class Denied(Exception):  # noqa: N818
    """The folder belongs to another client: its access list does not have our password."""


class Entry(NamedTuple):
    """The content of a node."""

    data: bytes
    session: int
    """Session that it ends with; 0 for one that stays."""


class Ensemble:
    """One session of ZooKeeper, which is opened again for as long as the process runs."""

    def __init__(
        self, hosts: str, password: str, clock: Clock, *, session_timeout_s: float = SESSION_TIMEOUT_S
    ) -> None:
        # Everybody may read, and only registrars write.
        self.acl: list[ACL] = [make_digest_acl(USER, password, all=True), *READ_ACL_UNSAFE]
        self.down_since: float | None = clock.monotonic()
        """Monotonic time since which there is no connection; None while there is one."""
        self.session_timeout_s = session_timeout_s
        self.on_change: Callable[[], None] = _ignore
        """Called in the event loop after every change of the connection."""
        self.session = 0
        """Session of the connection; 0 while there is none."""
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        # kazoo logs every attempt to connect; this module logs the changes of the state.
        self._kazoo_log = logging.getLogger("kazoo.silent")
        self._kazoo_log.setLevel(logging.CRITICAL + 1)
        self._hosts = hosts
        self._credentials = f"{USER}:{password}"
        self._client = self._new_client()
        self._started_at = clock.monotonic()

    def _new_client(self) -> KazooClient:
        client = KazooClient(
            self._hosts,
            timeout=self.session_timeout_s,
            auth_data=[("digest", self._credentials)],
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=_MAX_RETRY_DELAY_S),
            logger=self._kazoo_log,
        )
        client.add_listener(partial(self._listen, client))
        return client

    def start(self) -> None:
        """Connects in the background, also if the ensemble is unreachable now."""
        self._client.start_async()

    def start_again(self) -> None:
        """Begins a new session, if the connection is lost for so long that the former one has ended.

        A client insists on the last state that it has seen: an ensemble that was restored from a backup, or made
        again, refuses it for ever.
        """
        since = max(self.down_since or 0.0, self._started_at)
        if self.down_since is None or self._clock.monotonic() - since < self.session_timeout_s:
            return
        former, self._client = self._client, self._new_client()
        self._started_at = self._clock.monotonic()
        # kazoo waits for the time-out of a session until it gives up its connection.
        Thread(target=_end, args=(former,), daemon=True).start()
        self.start()

    async def stop(self) -> None:
        """Closes the session, with which its members disappear.

        A registrar that restarts exits without it: its successor takes its members over before the session times out.
        """
        await asyncio.to_thread(_end, self._client)

    async def claim_folder(self, path: str, *, whole: bool = False) -> None:
        """Creates a folder that only we write, or checks that it is ours. `whole` claims the ensemble's root, too."""
        if whole:
            await self._call(self._client.set_acls_async, "/", self.acl)
        await self._make_folder(path)
        acls, _ = await self._call(self._client.get_acls_async, path)
        if set(acls) != set(self.acl):
            raise Denied(f"{path} has an access list of another client")

    async def _make_folder(self, path: str) -> None:
        """Creates a folder and those above it. kazoo's own way can wait for ever when it is used concurrently."""
        for depth in range(2, path.count("/") + 2):
            with suppress(NodeExistsError):
                await self._call(self._client.create_async, "/".join(path.split("/")[:depth]), b"", acl=self.acl)

    async def put_ephemeral(self, path: str, data: bytes) -> None:
        """Makes sure that there is exactly this entry, and that it is of our session.

        An entry of a former session is replaced by one transaction: it would disappear when that session ends.
        """
        for _ in range(_PUT_ATTEMPTS):
            try:
                await self._call(self._client.create_async, path, data, acl=self.acl, ephemeral=True)
            except NoNodeError:
                await self._make_folder(path.rpartition("/")[0])
            except NodeExistsError:
                if await self._replace(path, data):
                    return
            else:
                return
        raise Unreachable(f"{path} is written by another client at the same time")

    async def _replace(self, path: str, data: bytes) -> bool:
        """Replaces an entry, unless it is as it should be. Returns False if it has changed meanwhile."""
        try:
            found, stat = await self._call(self._client.get_async, path)
        except NoNodeError:
            return False
        if stat.ephemeralOwner == self.session and found == data:
            return True
        transaction = self._client.transaction()
        transaction.delete(path, version=stat.version)
        transaction.create(path, data, acl=self.acl, ephemeral=True)
        results = await self._call(transaction.commit_async)
        return not any(isinstance(each, Exception) for each in results)

    async def delete(self, path: str) -> None:
        with suppress(NoNodeError):
            await self._call(self._client.delete_async, path)

    async def children(self, path: str, on_event: Callable[[], None]) -> list[str]:
        """Names in a folder, none if it does not exist; `on_event` is called once, after the next change."""

        def notify(_: object) -> None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(on_event)

        while True:
            with suppress(NoNodeError):
                return await self._call(self._client.get_children_async, path, watch=notify)
            if await self._call(self._client.exists_async, path, watch=notify) is None:
                return []

    async def read(self, path: str) -> Entry | None:
        try:
            data, stat = await self._call(self._client.get_async, path)
        except NoNodeError:
            return None
        return Entry(data, stat.ephemeralOwner or 0)

    async def _call(self, operation: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Sends a request and waits for its result.

        Without a connection nothing is sent: kazoo would keep the request, and send it at any later time.
        """
        if not self.session:
            raise Unreachable("no connection")
        future: asyncio.Future[Any] = self._loop.create_future()
        pending = operation(*arguments, **options)

        def settle() -> None:
            if future.done():
                return
            if pending.successful():
                future.set_result(pending.value)
            else:
                future.set_exception(pending.exception)

        def hand_over(_: object) -> None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(settle)

        pending.rawlink(hand_over)
        try:
            async with asyncio.timeout(OPERATION_TIMEOUT_S):
                return await future
        except (NodeExistsError, NoNodeError):
            raise
        except NoAuthError as error:
            raise Denied("no right to write: another client owns the entry or its folder") from error
        except TimeoutError as error:
            raise Unreachable("no answer") from error
        except KazooException as error:
            raise Unreachable(f"{type(error).__name__} {error}".strip()) from error

    def _listen(self, client: KazooClient, state: str) -> None:
        """Called in a thread of kazoo, in which no request may be made."""
        session = int(client.client_id[0]) if state == KazooState.CONNECTED and client.client_id else 0
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._apply_state, client, session)

    def _apply_state(self, client: KazooClient, session: int) -> None:
        if client is not self._client:
            return
        if session:
            self.down_since = None
            log.info("ensemble connected", session=f"{session:#x}")
        elif self.down_since is None:
            self.down_since = self._clock.monotonic()
            log.warning("ensemble connection lost", session=f"{self.session:#x}")
        self.session = session
        self.on_change()


def _end(client: KazooClient) -> None:
    client.stop()
    client.close()


def _ignore() -> None:
    """Default of the callback."""
