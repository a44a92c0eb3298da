"""`pin login`: say who you are, at a desk that is not on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import msgspec

from pincompute.api.whoami import SignIn
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.context import Context, find_context, read_context, write_context
from pincompute.base.login import forget_login, read_login, write_login
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DESK_UNREACHABLE, NAME_TAKEN, NOBODY_SIGNS_IN, USAGE
from pincompute.base.settings import setting
from pincompute.cli.asking import Asker, Unanswered
from pincompute.cli.openid import Code, asked_of
from pincompute.cli.signed_in import signed_in
from pincompute.cli.trust import tls
from pincompute.kube.addresses import safe

PATIENCE = 30.0


@click.command()
@click.argument("desk", default="")
@click.option("--name", "platform", help="What to call the platform; `main` by default.")
@click.option("--trust", type=click.Path(path_type=Path, exists=True), help="The authority of the desk's certificate.")
@click.option("--certificate", type=click.Path(path_type=Path, exists=True), help="What a program shows, each time.")
@click.option("--key", type=click.Path(path_type=Path, exists=True), help="Its key, where that is in another file.")
@click.option("--out", is_flag=True, help="Forget who you are.")
def login(  # noqa: PLR0913  (each is an option)
    desk: str, platform: str | None, trust: Path | None, *, certificate: Path | None, key: Path | None, out: bool
) -> None:
    """Sign in at a desk, such as https://desk.example.com.

    It shows an address and a code: open the one and type the other, on any device. From then on `--name NAME` speaks to
    that desk as you, and renews your login by itself. Who has a token in the file that PIN_TOKEN names shows that, and
    a program may show its certificate.
    """
    name, state = setting("name", platform), Path(setting("state"))
    if out:
        asyncio.run(leave(state, name))
        click.echo(f"{name}: nobody is signed in")
        return
    context = _context(state, name, desk, trust)
    if certificate or key:
        context = _certified(context, certificate, key)
        forget_login(state, name)
    if certificate or setting("token"):
        click.echo(f"{asyncio.run(shown(state, context))}  is known at {context.desk}        next: pin whoami")
        return
    who = asyncio.run(sign_in(state, context, SystemClock()))
    click.echo(f"{who}  signed in at {context.desk}        next: pin whoami")


def _context(state: Path, name: str, desk: str, trust: Path | None) -> Context:
    if not desk:
        return read_context(state, name)
    try:
        address = safe(desk).rstrip("/")
    except ValueError as error:
        raise Refused(Problem(USAGE, str(error), next="pin login https://…")) from error
    known = find_context(state, name)
    if known and known.desk != address:
        what = f"'{name}' is the platform at {known.desk} already"
        raise Refused(Problem(NAME_TAKEN, what, next=f"pin login {desk} --name NAME"))
    there = known or Context(name=name, desk=address, token="", kubeconfig="")
    return msgspec.structs.replace(there, authority=str(trust.resolve())) if trust else there


def _certified(context: Context, certificate: Path | None, key: Path | None) -> Context:
    """With what is shown from then on, with each request as it is by then."""
    if certificate is None:
        raise Refused(Problem(USAGE, "--key is of a certificate", next="pin login DESK --certificate FILE --key FILE"))
    if not context.desk.startswith("https:"):
        what = f"a certificate is shown by TLS alone, and {context.desk} has none"
        raise Refused(Problem(USAGE, what, next="pin login https://… --certificate FILE"))
    files = {"identity": str(certificate.resolve()), "key": str(key.resolve()) if key else ""}
    return msgspec.structs.replace(context, token="", **files)


async def sign_in(state: Path, context: Context, clock: Clock) -> str:
    """As whom."""
    where = await _where(context)
    async with asked_of(where.issuer, where.client, clock) as provider:
        code = await provider.begin(where.scopes)
        _tell(code)
        found = await provider.finish(code)
    write_context(state, context)
    write_login(state, context.name, found)
    from pincompute.cli.desk import desk_port

    async with desk_port(msgspec.structs.replace(context, token=found.token)) as port:
        return (await port.whoami()).name


async def shown(state: Path, context: Context) -> str:
    """As whom, of who has a token or a certificate already, such as a program."""
    from pincompute.cli.desk import desk_port

    async with desk_port(await signed_in(state, context)) as port:
        who = (await port.whoami()).name
    write_context(state, context)
    return who


async def leave(state: Path, name: str) -> None:
    """Here at once, and at the provider if it answers."""
    found = read_login(state, name)
    forget_login(state, name)
    context = find_context(state, name)
    if context and context.identity:
        write_context(state, msgspec.structs.replace(context, identity="", key=""))
    if found:
        async with asked_of(found.issuer, found.client, SystemClock()) as provider:
            await provider.give_back(found)


async def _where(context: Context) -> SignIn:
    try:
        async with (
            asyncio.timeout(PATIENCE),
            Asker(context.desk, {}, tls(context)) as asker,
            asker.ask("GET", "/v1/sign-in") as answer,
        ):
            found = msgspec.json.decode(await answer.read(), type=SignIn)
    except (Unanswered, TimeoutError, msgspec.DecodeError) as error:
        what = f"at {context.desk} no desk answers: {error or type(error).__name__}"
        raise Refused(Problem(DESK_UNREACHABLE, what, next="see that the address is right")) from error
    if not found.issuer:
        what = f"the desk at {context.desk} signs nobody in: it knows whoever has its token"
        raise Refused(Problem(NOBODY_SIGNS_IN, what, next="pin whoami"))
    return found


def _tell(code: Code) -> None:
    click.echo(f"open {code.whole or code.address}\nand see that it shows the code {code.code}", err=True)
