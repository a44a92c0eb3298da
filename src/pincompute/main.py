"""The command table: every command by name, loaded only when it is called."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import click

COMPLETE_VARIABLE = "_PIN_COMPLETE"
ABOUT = "Run services, batches and training jobs on Kubernetes, each from one short file."

# Location of each command, and its one-line help, which `pin --help` prints without importing the command.
COMMAND_GROUPS = {
    "Run workloads": {
        "deploy": ("pincompute.cli.deploy:deploy", "Run a workload and follow it until it is ready or done."),
        "plan": ("pincompute.cli.plan:plan", "Show what files would create and change."),
        "import": (
            "pincompute.cli.import_:import_",
            "Show existing Kubernetes objects as workload files, or adopt one.",
        ),
        "delete": ("pincompute.cli.delete:delete", "Delete workloads and their Kubernetes objects."),
    },
    "Inspect workloads": {
        "get": ("pincompute.cli.get:get", "List workloads, or show one briefly."),
        "top": ("pincompute.cli.top:top", "Show use of CPU and memory, highest first."),
        "show": ("pincompute.cli.show:show", "Show everything known about a workload."),
        "why": ("pincompute.cli.why:why", "Explain why a workload is not ready or not done."),
        "endpoints": ("pincompute.cli.endpoints:endpoints", "Show the members of a workload's serverset in ZooKeeper."),
        "events": ("pincompute.cli.events:events", "Show the Kubernetes events of a workload."),
        "history": ("pincompute.cli.history:history", "Show what happened to a workload, also to a deleted one."),
        "logs": ("pincompute.cli.logs:logs", "Show the logs of a workload."),
        "wait": ("pincompute.cli.wait:wait", "Wait until a workload is ready, done or deleted."),
        "provenance": (
            "pincompute.cli.provenance:provenance",
            "Show the commit, reviews and build that a workload runs from.",
        ),
    },
    "Debug replicas": {
        "shell": ("pincompute.cli.shell:shell", "Open a shell in a running replica, or run a program there."),
        "cp": ("pincompute.cli.cp:cp", "Copy files and folders to or from a replica."),
        "files": ("pincompute.cli.files_:files", "List files in a replica, also of a container that has ended."),
        "ps": ("pincompute.cli.ps:ps", "Show the processes and open sockets of replicas."),
        "port-forward": ("pincompute.cli.port_forward:port_forward", "Forward a local port to a replica."),
    },
    "Change workloads": {
        "edit": ("pincompute.cli.edit:edit", "Edit a workload's document in your editor, and deploy it."),
        "scale": ("pincompute.cli.scale:scale", "Set the number of replicas, or of parallel tasks."),
        "restart": ("pincompute.cli.restart:restart", "Restart every replica by a rollout."),
        "pause": ("pincompute.cli.pause:pause", "Pause a rollout, a batch or a schedule."),
        "resume": ("pincompute.cli.resume:resume", "Resume a paused rollout, batch or schedule."),
        "cancel": ("pincompute.cli.cancel:cancel", "End a batch or a training job for good."),
        "rollback": ("pincompute.cli.rollback:rollback", "Roll a workload back to an earlier revision."),
        "rerun": ("pincompute.cli.rerun:rerun", "Rerun failed or given tasks, or run a periodic job once now."),
    },
    "Review and publish": {
        "review": ("pincompute.cli.review:review", "Approve a commit."),
        "project": ("pincompute.cli.project:project", "Show a project, create one, and change its members."),
        "secret": ("pincompute.cli.secret:secret", "Create, rotate and grant the secrets of a project."),
        "audit": ("pincompute.cli.audit:audit", "Show who did what in a project, newest first."),
        "publish": (
            "pincompute.cli.publish:publish",
            "Publish a landed workload file to the artifact store, as CI does.",
        ),
    },
    "Sign in": {
        "login": ("pincompute.cli.login:login", "Sign in to a desk, such as https://desk.example.com."),
        "open": ("pincompute.cli.open_:open_", "Open the pages of the platform, or of one workload, in your browser."),
        "whoami": ("pincompute.cli.whoami:whoami", "Show your identity, and your role in each project."),
        "trust": ("pincompute.cli.trust:trust", "Print how to make programs trust the HTTPS of a local platform."),
    },
    "Run a platform": {
        "up": ("pincompute.engine.commands:up", "Start a platform on this machine."),
        "status": ("pincompute.engine.commands:status", "Show the state of every part of a platform."),
        "down": ("pincompute.engine.commands:down", "Stop a platform; --purge deletes its data."),
        "image": ("pincompute.engine.images.commands:image", "Build, load and list images of a platform."),
        "kubectl": ("pincompute.engine.commands:kubectl", "Run kubectl on a platform."),
        "install": ("pincompute.engine.installation.commands:install", "Install the platform on an existing cluster."),
        "uninstall": (
            "pincompute.engine.installation.commands:uninstall",
            "Remove the platform from a cluster; workloads keep running.",
        ),
        "runtime": (
            "pincompute.cli.runtime:runtime",
            "Roll out a new runtime, and show its effect on every workload.",
        ),
        "crds": ("pincompute.cli.crds:crds", "Print the CustomResourceDefinitions of all kinds."),
    },
    "Practise with faults": {
        "break": ("pincompute.cli.break_:break_", "Inject a real fault into a workload, to see it diagnosed."),
        "heal": ("pincompute.cli.heal:heal", "Remove an injected fault, and restore the revision before it."),
    },
    "Set up the command line": {
        "config": (
            "pincompute.cli.config:config",
            "Publish and roll configuration bundles; show settings.",
        ),
        "version": ("pincompute.cli.version:version", "Print the version."),
        "completion": ("pincompute.cli.completion:completion", "Print the setup of shell completion."),
    },
}
COMMANDS = {name: entry for group in COMMAND_GROUPS.values() for name, entry in group.items()}

# Started by `pin up` and by manifests, not by users, so that help does not list them.
PROCESSES = {
    "desk": ("pincompute.desk.process:desk", "Run the submission service."),
    "insight": ("pincompute.insight.process:insight", "Run insight: lists, changes and history for the desk."),
    "operator": ("pincompute.operator.process:operator", "Run the operator."),
    "agent": ("pincompute.agents.commands:agent", "Run one of the agents."),
}


def main() -> None:
    """Entry point of `pin`. Help is printed from the table alone."""
    # A shell asks for completions by a variable.
    if sys.argv[1:] in (["-h"], ["--help"]) and COMPLETE_VARIABLE not in os.environ:
        sys.stdout.write(format_overview())
        return
    # Modules live until the process ends. Collecting garbage while they load takes longer than some commands.
    gc.disable()
    try:
        command_group()(prog_name="pin")
    finally:
        gc.freeze()


def complete() -> None:
    """Entry point of `kubectl_complete-pin`, which kubectl runs to complete `kubectl pin …`."""
    from pincompute.cli.completion import complete_for_kubectl

    sys.stdout.write(f"{complete_for_kubectl(command_group())}\n")


def format_overview() -> str:
    width = max(map(len, COMMANDS))
    groups = "".join(
        f"{title}:\n" + "".join(f"  {name.ljust(width)}  {help_}\n" for name, (_, help_) in group.items()) + "\n"
        for title, group in COMMAND_GROUPS.items()
    )
    return f"Usage: pin COMMAND [ARGS]...\n\n  {ABOUT}\n\n{groups}Details: pin COMMAND --help\n"


def command_group() -> click.Group:
    # Imported here, as click takes longer to load than the overview takes to print.
    from pincompute.cli.group import LazyGroup

    return LazyGroup(COMMANDS, PROCESSES, format_overview())
