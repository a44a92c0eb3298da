"""`pin desk`: the desk as a process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from pincompute.api.debug import DebugRequest
from pincompute.api.policy import Policy
from pincompute.api.whoami import DEFAULT_SCOPES
from pincompute.api.workload import Workload
from pincompute.base import logging as logs
from pincompute.base.debug_grant import GrantSigner
from pincompute.base.gc_settings import relax_gc
from pincompute.base.ids import Ids, RandomIds
from pincompute.base.registry_token import RegistryTokenSigner
from pincompute.desk.authn.settings import REQUIRED, AuthnSettings
from pincompute.desk.builds import BuildVerifier
from pincompute.desk.debug_agents import DebugAgents
from pincompute.desk.desk import Desk
from pincompute.desk.dispatcher import Dispatcher
from pincompute.desk.http.registry_routes import RegistryIssuer
from pincompute.desk.http.server import create_app
from pincompute.desk.leadership import run_leader_tasks
from pincompute.desk.ledger_sync import LedgerSync
from pincompute.desk.limits.connections import serve_app
from pincompute.desk.limits.middleware import Limits
from pincompute.desk.metrics import serve_metrics
from pincompute.desk.outbound_credentials import (
    ARTIFACTS_TOKEN_FILE,
    GIT_AUTHORITY_FILE,
    GIT_CREDENTIALS_FILE,
    OPENID_SECRET_FILE,
    OutboundCredentials,
)
from pincompute.desk.policies import PolicyChecker, read_policies
from pincompute.desk.repository import RepositoryMirrors
from pincompute.desk.secrets import SecretStoreClient, open_secret_store
from pincompute.desk.store.database import Database, open_database
from pincompute.kube.client import Client
from pincompute.kube.in_cluster import load_or_in_cluster
from pincompute.kube.request_metrics import request_metrics
from pincompute.platforms.access import ReplicaLocation
from pincompute.platforms.artifact_store import open_artifact_store
from pincompute.platforms.config_store import ConfigStoreClient, open_config_store
from pincompute.platforms.insight_client import InsightClient, open_insight
from pincompute.platforms.kubernetes.exec_session import locate_container
from pincompute.platforms.kubernetes.logs.store_client import LogStoreClient, open_log_store
from pincompute.platforms.kubernetes.platform import KubernetesPlatform
from pincompute.platforms.kubernetes.token_review import TokenReviewer

_FILE = click.Path(path_type=Path)
_THREAD_SWITCH_INTERVAL_S = 0.0005
"""A tenth of Python's default. The database's thread asks for the interpreter when a commit is on disk; a loop that is
busy rejecting requests would let it wait for the whole interval, at each commit."""


@click.command()
@click.option("--kubeconfig", type=_FILE, help="Access to the cluster. Default: the pod's service account.")
@click.option("--listen", default="127.0.0.1:0", help="Address and port.", show_default=True)
@click.option("--token-file", type=_FILE, help="File that holds the local administrator token. Default: none.")
@click.option("--person", default="me", help="Name of the local administrator.", show_default=True)
@click.option("--issuer", default="", help="URL of the OpenID provider. Default: none.")
@click.option("--client", default="pin", help="OpenID client ID of the CLI.", show_default=True)
@click.option("--scopes", default=DEFAULT_SCOPES, help="OpenID scopes that the CLI requests.", show_default=True)
@click.option("--name-claim", default="email", help="Token claim with the user's name.", show_default=True)
@click.option("--groups-claim", default="groups", help="Token claim with the user's groups.", show_default=True)
@click.option("--administrators", default="", help="Group of the platform's administrators. Default: none.")
@click.option(
    "--email-verified",
    default=REQUIRED,
    help="Token claim email_verified: required, or optional if the provider has none.",
    show_default=True,
)
@click.option(
    "--trusted-proxies",
    default="",
    help="Addresses or networks of proxies, separated by commas, whose X-Forwarded-For is believed. Default: none.",
)
@click.option("--tls-certificate", type=_FILE, help="Certificate chain of the desk.")
@click.option("--tls-key", type=_FILE, help="Private key of the certificate.")
@click.option("--client-roots", type=_FILE, help="Root certificates of client certificates.")
@click.option("--trust-domain", default="", help="SPIFFE trust domain of client certificates.")
@click.option("--web-url", default="", help="Address of the desk for browsers that sign in by OpenID. Default: none.")
@click.option("--web-client", default="", help="OpenID client ID for browsers. Default: that of the CLI.")
@click.option("--log-store", default="", help="URL of the log store. Default: none.")
@click.option("--insight", default="", help="URL of insight. Default: none; lists are then read directly.")
@click.option("--secret-store", default="", help="URL of the secret store. Default: none.")
@click.option("--config-store", default="", help="URL of the config store. Default: none.")
@click.option(
    "--database",
    required=True,
    envvar="PIN_DATABASE",
    help="File, or postgresql://… Use PIN_DATABASE if the URL holds a password.",
)
@click.option("--folder", type=_FILE, required=True, help="Folder for repository mirrors, and for builds.")
@click.option("--policies", type=_FILE, help="File of policies for all workloads. Default: none.")
@click.option(
    "--artifacts",
    default="",
    help="Artifact store: https://…/artifactory/REPOSITORY, or a folder. Default: in --folder.",
)
@click.option(
    "--credentials",
    type=_FILE,
    help="Folder with credentials for the artifact store, git and the OpenID provider:"
    f" {ARTIFACTS_TOKEN_FILE}, {GIT_CREDENTIALS_FILE}, {GIT_AUTHORITY_FILE}, {OPENID_SECRET_FILE}. Default: none.",
)
@click.option("--registry", default="", help="Address of the platform's image registry. Default: none.")
@click.option("--registry-key", type=_FILE, help="Key that signs tokens of that registry.")
@click.option("--registry-roots", type=_FILE, help="CA certificate of that registry.")
@click.option("--debug-port", type=int, help="Port of the node agents for debugging. Default: none.")
@click.option("--debug-key", type=_FILE, help="Key that signs grants for the node agents.")
@click.option("--debug-roots", type=_FILE, help="CA certificate of the node agents.")
@click.option("--metrics-listen", default="", metavar="ADDRESS:PORT", help="Address of the metrics. Default: none.")
@click.option("--metrics-token-file", type=_FILE, help="File with the bearer token of the metrics.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=Limits().rate,
    show_default=True,
    help="Limit of requests per second for each client; 0: unlimited.",
)
def desk(token_file: Path | None, **options: Any) -> None:
    """Run the submission service."""
    logs.configure(process="desk")
    relax_gc()
    sys.setswitchinterval(_THREAD_SWITCH_INTERVAL_S)
    token = token_file.read_text().strip() if token_file else ""
    if bool(options["metrics_listen"]) != bool(options["metrics_token_file"]):
        raise click.UsageError("give --metrics-listen and --metrics-token-file, or none of them")
    authn_options = {name: options.pop(name) for name in AuthnSettings.option_names()}
    asyncio.run(_run(DeskOptions(authn=AuthnSettings(token, **authn_options), **options)))


class DeskOptions(NamedTuple):
    """The options of the command, named as on the command line."""

    authn: AuthnSettings
    kubeconfig: Path | None
    listen: str
    log_store: str
    insight: str
    secret_store: str
    config_store: str
    database: str
    folder: Path
    artifacts: str
    credentials: Path | None
    policies: Path | None
    rate: float
    registry: str
    registry_key: Path | None
    registry_roots: Path | None
    debug_port: int | None
    debug_key: Path | None
    debug_roots: Path | None
    metrics_listen: str
    metrics_token_file: Path | None

    def debug_agents(self, client: Client) -> DebugAgents | None:
        if not (self.debug_port and self.debug_key and self.debug_roots):
            return None

        async def locate(workload: Workload, request: DebugRequest) -> ReplicaLocation:
            return await locate_container(client, workload, request.replica, request.container, ended=request.ended)

        ids = RandomIds()
        return DebugAgents(
            locate, GrantSigner(self.debug_key, client.clock, ids), ids, self.debug_port, self.debug_roots
        )

    def registry_issuer(self) -> RegistryIssuer | None:
        if not (self.registry and self.registry_key and self.registry_roots):
            return None
        return RegistryIssuer(self.registry, self.registry_roots, RegistryTokenSigner(self.registry_key))


async def _run(options: DeskOptions) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    access = load_or_in_cluster(options.kubeconfig)
    policies = read_policies(options.policies.read_text(), str(options.policies)) if options.policies else ()
    database = await open_database(options.database)
    async with Client(access, agent="desk") as client, AsyncExitStack() as stack:
        log_store = None
        if options.log_store:
            # With the certificate that it has for the cluster.
            log_store = await stack.enter_async_context(open_log_store(options.log_store, access.ssl_context()))
        insight = None
        if options.insight:
            tls = access.ssl_context()
            insight = await stack.enter_async_context(open_insight(options.insight, tls, client.clock))
        secret_store = None
        if options.secret_store:
            tls = access.ssl_context()
            secret_store = await stack.enter_async_context(open_secret_store(options.secret_store, tls))
        config_store = None
        if options.config_store:
            config_store = await stack.enter_async_context(
                open_config_store(options.config_store, access.ssl_context())
            )
        # They need to allow reading only: publishers have credentials of their own.
        credentials = OutboundCredentials(options.credentials)
        artifacts = options.artifacts or str(options.folder / "artifacts")
        store = await stack.enter_async_context(open_artifact_store(artifacts, credentials.artifact_store_token))
        builds = BuildVerifier(store, RepositoryMirrors(options.folder / "repositories", credentials), database)
        desk = await stack.enter_async_context(
            running_desk(
                database,
                client,
                builds,
                log_store,
                policies=policies,
                insight=insight,
                secret_store=secret_store,
                config_store=config_store,
                debug_agents=options.debug_agents(client),
            )
        )
        authenticator, sign_in = (
            options.authn.authenticator(TokenReviewer(client), client.clock),
            options.authn.sign_in(),
        )
        code_flow = options.authn.code_flow(client.clock, credentials.openid_client_secret)
        app = create_app(
            desk, authenticator, sign_in, Limits(options.rate), options.registry_issuer(), code_flow=code_flow
        )
        if options.metrics_listen and options.metrics_token_file:
            page = (options.metrics_listen, options.metrics_token_file)
            platform_metrics = partial(request_metrics, client.request_stats)
            await stack.enter_async_context(serve_metrics(*page, app, desk, platform_metrics))
        host, _, port = options.listen.rpartition(":")
        async with serve_app(app, host, int(port), options.authn.tls_context()):
            await stop.wait()
    await database.close()


@asynccontextmanager
async def running_desk(  # noqa: PLR0913  (its collaborators)
    database: Database,
    client: Client,
    builds: BuildVerifier,
    log_store: LogStoreClient | None = None,
    *,
    ids: Ids | None = None,
    policies: tuple[Policy, ...] = (),
    insight: InsightClient | None = None,
    secret_store: SecretStoreClient | None = None,
    config_store: ConfigStoreClient | None = None,
    debug_agents: DebugAgents | None = None,
) -> AsyncGenerator[Desk]:
    """A desk with its background tasks: the platform's watches, and the leader tasks (dispatcher and ledger sync)."""
    clock = client.clock
    platform = KubernetesPlatform(client, log_store=log_store)
    ledger_sync = LedgerSync(database, platform, clock)
    dispatcher = Dispatcher(database, platform, ledger_sync, clock, client.random)
    acquire = partial(database.acquire_leadership, platform.name)
    watches = asyncio.create_task(platform.run())
    leader_tasks = asyncio.create_task(run_leader_tasks(acquire, (dispatcher.run, ledger_sync.run)))
    try:
        if not database.shared:
            # The only desk of this database: without the leadership it could not deliver what it accepts.
            await dispatcher.caught_up.wait()
        checker = PolicyChecker(policies, database)
        yield Desk(
            database,
            dispatcher,
            builds,
            clock=clock,
            ids=ids or RandomIds(),
            policies=checker,
            insight=insight,
            secret_store=secret_store,
            config_store=config_store,
            debug_agents=debug_agents,
        )
    finally:
        for task in (leader_tasks, watches):
            task.cancel()
        await asyncio.gather(leader_tasks, watches, return_exceptions=True)
