"""Client of kubelets, for the resource use of their pods."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import NamedTuple

import aiohttp
from yarl import URL

from pincompute import __version__
from pincompute.base.problem import Refused
from pincompute.kube.access import Access
from pincompute.kube.account_token import TokenInvalid
from pincompute.kube.errors import Forbidden, NotFound

MAX_STATS_BYTES = 4 * 2**20
"""A summary has about 1 kB for a container, and a node a few hundred of those."""
STATS_PATH = "/stats/summary"
_MAX_PORT = 2**16 - 1


class KubeletAddress(NamedTuple):
    host: str
    """Address of the node, no name: node names do not resolve in DNS everywhere."""
    port: int


class KubeletUnavailable(Exception):  # noqa: N818  (named for what happened, not for an error class)
    """A kubelet that reports nothing. The text is for users, and names no address."""


class KubeletClient:
    """Asks kubelets directly, with the client certificate that the API server knows us by, or with a given token.

    The token of the access is never sent: a node that an attacker has taken over would receive it, and with it all our
    rights. A given one must have no right but `get` of `nodes/stats`. The API server's proxy is not used, as its
    permission `nodes/proxy` includes running programs in every container.
    """

    def __init__(self, access: Access, read_token: Callable[[], Awaitable[str]] | None = None) -> None:
        self._access = access
        self._read_token = None if access.certificate else read_token
        self._tls: ssl.SSLContext | None = None

    async def read_stats(self, address: KubeletAddress, *, with_io: bool = False) -> bytes:
        """The summary of a kubelet's pods: CPU and memory, or network and disk as well. Raises KubeletUnavailable."""
        url, tls = _stats_url(address, with_io=with_io), self._tls_context()
        headers = {"User-Agent": f"pincompute/{__version__}", "Accept-Encoding": "identity"}
        if self._read_token is not None:
            headers["Authorization"] = f"Bearer {await self._token(self._read_token)}"
        connector = aiohttp.TCPConnector(ssl=tls)
        try:
            # Without decompression, as a small response could become a huge one.
            async with (
                aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False) as session,
                session.get(url, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise KubeletUnavailable(_refusal(response.status))
                return await _read_bounded(response)
        except aiohttp.ClientConnectorCertificateError as error:
            raise KubeletUnavailable("the certificate of its kubelet is not trusted") from error
        except (aiohttp.ClientError, OSError) as error:
            raise KubeletUnavailable("its kubelet does not answer") from error

    async def _token(self, read_token: Callable[[], Awaitable[str]]) -> str:
        try:
            return await read_token()
        except (Forbidden, NotFound) as error:
            raise KubeletUnavailable(
                "the service account for kubelets, or the right to its tokens, is missing"
            ) from error
        except (Refused, TokenInvalid) as error:
            raise KubeletUnavailable("the API server issues no token for kubelets") from error

    def _tls_context(self) -> ssl.SSLContext:
        if not self._access.certificate and self._read_token is None:
            raise KubeletUnavailable("kubelets are asked with a client certificate only, and this login has none")
        if self._tls is None:
            self._tls = self._access.ssl_context()
        return self._tls


def _stats_url(address: KubeletAddress, *, with_io: bool) -> URL:
    host, port = address
    if not _is_ip_address(host) or not 0 < port <= _MAX_PORT:
        raise KubeletUnavailable("the node has no valid address")
    query = {} if with_io else {"only_cpu_and_memory": "true"}
    return URL.build(scheme="https", host=host, port=port, path=STATS_PATH, query=query)


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _refusal(status: int) -> str:
    if status in (401, 403):
        return "its kubelet refuses: the permission get of nodes/stats is missing"
    return f"its kubelet answers with status {status}"


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_STATS_BYTES:
            raise KubeletUnavailable(f"its kubelet sends more than {MAX_STATS_BYTES // 2**20} MiB")
    return bytes(body)
