"""The command table: every command by name, loaded only when it is called. It decides nothing."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import click

COMPLETING = "_PIN_COMPLETE"
ABOUT = "One short file, and it runs on Kubernetes with everything around it already there."

# Where each command lives, and the line that help shows without loading it; by what somebody is about to do.
CHAPTERS = {
    "Run work": {
        "deploy": ("pincompute.cli.deploy:deploy", "Run a workload and follow it to its goal."),
        "plan": ("pincompute.cli.plan:plan", "Show what files would become and change."),
        "import": ("pincompute.cli.import_:import_", "Show an existing Deployment as a short file, or take it over."),
        "delete": ("pincompute.cli.delete:delete", "End workloads and remove what they became."),
    },
    "Look at it": {
        "get": ("pincompute.cli.get:get", "List workloads, or show one in short."),
        "show": ("pincompute.cli.show:show", "Show all that is known of a workload."),
        "why": ("pincompute.cli.why:why", "Say why a workload is not as wanted."),
        "logs": ("pincompute.cli.logs:logs", "Show what a workload prints."),
        "wait": ("pincompute.cli.wait:wait", "Wait until a workload is ready, done or gone."),
        "provenance": (
            "pincompute.cli.provenance:provenance",
            "Show from which commit, by whose word, something runs.",
        ),
    },
    "Go into it": {
        "shell": ("pincompute.cli.shell:shell", "Open a shell in a copy that runs, or run a program there."),
        "port-forward": ("pincompute.cli.port_forward:port_forward", "Reach a port of a copy by one of this machine."),
    },
    "Change it": {
        "scale": ("pincompute.cli.scale:scale", "Run so many copies, or so many tasks side by side."),
        "restart": ("pincompute.cli.restart:restart", "Make every copy anew, as its rollout says."),
        "pause": ("pincompute.cli.pause:pause", "Keep a rollout, a batch or a schedule still."),
        "resume": ("pincompute.cli.resume:resume", "Let go on what was paused."),
        "rollback": ("pincompute.cli.rollback:rollback", "Make a workload what it was before."),
        "rerun": (
            "pincompute.cli.rerun:rerun",
            "Run again what has failed, or what is named; a periodic job once now.",
        ),
    },
    "Bring in what has landed": {
        "review": ("pincompute.cli.review:review", "Sign that a commit is good."),
        "project": ("pincompute.cli.project:project", "Show a project: who may what, what it may use, what waits."),
        "publish": ("pincompute.cli.publish:publish", "Put what landed into the artifact store, as CI does."),
    },
    "Say who you are": {
        "login": ("pincompute.cli.login:login", "Sign in at a desk, such as https://desk.example.com."),
        "whoami": ("pincompute.cli.whoami:whoami", "Show who you are to the desk, and what you are in each project."),
    },
    "Have a platform": {
        "up": ("pincompute.engine.commands:up", "Start a platform on this machine."),
        "status": ("pincompute.engine.commands:status", "Show every part of a platform."),
        "down": ("pincompute.engine.commands:down", "End a platform; --purge forgets it."),
        "image": ("pincompute.engine.images.commands:image", "Bring images in, and list them."),
        "kubectl": ("pincompute.engine.commands:kubectl", "Kubernetes' own command line, on a platform."),
        "install": ("pincompute.engine.installation.commands:install", "Bring the platform to a cluster that exists."),
        "uninstall": (
            "pincompute.engine.installation.commands:uninstall",
            "Take the platform off a cluster; its workloads go on running.",
        ),
        "runtime": (
            "pincompute.cli.runtime:runtime",
            "Roll a new runtime out, and show what it does to every workload.",
        ),
        "crds": ("pincompute.cli.crds:crds", "Print our kinds as Kubernetes knows them."),
    },
    "Try out what goes wrong": {
        "break": ("pincompute.cli.break_:break_", "Put a real fault on a workload, to see it told."),
        "heal": ("pincompute.cli.heal:heal", "Make well again what was broken on purpose."),
    },
    "Set up the command line": {
        "config": ("pincompute.cli.config:config", "Show the settings and where each comes from."),
        "completion": ("pincompute.cli.completion:completion", "Print what a shell needs to complete what you type."),
    },
}
COMMANDS = {name: entry for chapter in CHAPTERS.values() for name, entry in chapter.items()}

# Started by `pin up`, not typed by people: help does not list them.
PROCESSES = {
    "desk": ("pincompute.submission.process:desk", "Run the submission service."),
    "operator": ("pincompute.operator.process:operator", "Run the operator."),
    "agent": ("pincompute.agents.commands:agent", "Run one of the agents."),
}


def main() -> None:
    """What `pin` runs. Help comes straight from the table: nothing is loaded that it does not need."""
    # A shell that completes asks by a variable, and without words.
    if sys.argv[1:] in ([], ["-h"], ["--help"]) and COMPLETING not in os.environ:
        sys.stdout.write(overview())
        return
    # What is loaded stays to the end: looking through it for what may go takes longer than some commands do.
    gc.disable()
    try:
        group()(prog_name="pin")
    finally:
        gc.freeze()


def complete() -> None:
    """What kubectl runs to complete `kubectl pin …`: our own answer to any other shell."""
    from pincompute.cli.completion import for_kubectl

    sys.stdout.write(f"{for_kubectl(group())}\n")


def overview() -> str:
    width = max(map(len, COMMANDS))
    chapters = "".join(
        f"{title}:\n" + "".join(f"  {name.ljust(width)}  {about}\n" for name, (_, about) in chapter.items()) + "\n"
        for title, chapter in CHAPTERS.items()
    )
    return f"Usage: pin COMMAND [WORDS]...\n\n  {ABOUT}\n\n{chapters}More of each: pin COMMAND --help\n"


def group() -> click.Group:
    # The parser takes longer to load than help takes to print.
    from pincompute.cli.group import LazyGroup

    return LazyGroup(COMMANDS, PROCESSES, overview())
