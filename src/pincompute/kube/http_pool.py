"""Connections to one server, kept open between requests."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import ssl
import time
import weakref
from urllib.parse import SplitResult, urlsplit

from pincompute.kube.http_connection import HttpConnection

MAX_IDLE_S = 15.0
"""A connection that was idle for longer is closed: a proxy between us and the server may have forgotten it."""
_HAPPY_EYEBALLS_DELAY_S = 0.25
"""Where a name has several addresses, the next one is tried after this time."""
_ERRNO = re.compile(r"\[Errno (\d+)\]")


class ConnectFailedError(Exception):
    """No connection could be opened, so that nothing was sent; its cause says why."""


class ConnectionPool:
    """Opens connections, and takes back those on which another request can be sent. Their number is not limited."""

    def __init__(self, server: str, server_name: str, connect_timeout_s: float) -> None:
        self._address = urlsplit(server)
        self._server_name = server_name
        self._connect_timeout_s = connect_timeout_s
        self._idle: list[tuple[HttpConnection, ssl.SSLContext | None, float]] = []
        """With the TLS context, which carries the client's certificate, and the time of the last use."""
        self._open: weakref.WeakKeyDictionary[HttpConnection, ssl.SSLContext | None] = weakref.WeakKeyDictionary()

    @property
    def address(self) -> SplitResult:
        return self._address

    async def acquire(self, context: ssl.SSLContext | None, *, fresh: bool = False) -> HttpConnection:
        """The connection that was used last, or a new one. Raises ConnectFailedError."""
        while self._idle and not fresh:
            connection, opened_with, idle_since = self._idle.pop()
            # After a change of credentials a connection would still act for the former certificate.
            if opened_with is context and connection.reusable and time.monotonic() - idle_since < MAX_IDLE_S:
                return connection
            connection.abort()
        connection = await self._connect(context)
        self._open[connection] = context
        return connection

    def release(self, connection: HttpConnection) -> None:
        """Keeps a connection for the next request, if its response was read to its end."""
        if not connection.reusable:
            connection.abort()
            return
        connection.reused = True
        now = time.monotonic()
        self._idle.append((connection, self._open[connection], now))
        while self._idle and now - self._idle[0][2] > MAX_IDLE_S:
            # The ones below are used only while many requests run at once.
            self._idle.pop(0)[0].abort()

    def close(self) -> None:
        """Closes all connections, also those in use."""
        for connection in list(self._open):
            connection.abort()
        self._idle.clear()

    async def _connect(self, context: ssl.SSLContext | None) -> HttpConnection:
        try:
            host, port = self._address.hostname, self._address.port or (443 if context else 80)
            if not host:
                raise ValueError("the address has no host")
            async with asyncio.timeout(self._connect_timeout_s):
                _, connection = await asyncio.get_running_loop().create_connection(
                    HttpConnection,
                    host,
                    port,
                    ssl=context,
                    server_hostname=(self._server_name or host) if context else None,
                    happy_eyeballs_delay=None if _is_ip_address(host) else _HAPPY_EYEBALLS_DELAY_S,
                )
        except TimeoutError as error:
            raise ConnectFailedError("connect timed out") from error
        except (OSError, ValueError) as error:
            raise ConnectFailedError(describe_error(error)) from error
        return connection


def _is_ip_address(host: str) -> bool:
    """Whether there is one address to try. asyncio's race of several leaks its socket if it is cancelled at its end."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def describe_error(error: Exception) -> str:
    """Cause of a connection error in plain words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error}"
    if isinstance(error, ConnectionError | OSError) and not isinstance(error, ssl.SSLError):
        # If all addresses of a name fail, asyncio joins their errors to one without a number.
        number = error.errno or next((int(each) for each in _ERRNO.findall(str(error))), 0)
        if number > 0:
            return os.strerror(number).lower()
    return str(error) or type(error).__name__
