"""Examples for the help of each command: what to type, and what it does."""

from __future__ import annotations

EXAMPLES = {
    "audit": (
        ("pin audit -p ads", "who did what in the project ads"),
        ("pin audit --all --limit 50", "the newest 50 acts on the whole platform"),
    ),
    "break": (
        ("pin break web", "the faults that apply to web"),
        ("pin break web --random", "a fault to find by pin why"),
    ),
    "cancel": (
        ("pin cancel resize --because 'wrong input'", "end its running tasks; finished ones keep their results"),
        ("pin cancel ranker --no-wait", "end a training job, and do not wait until its replicas have ended"),
    ),
    "completion": (
        ('eval "$(pin completion bash)"', "completion in this bash"),
        ("pin completion fish", "the setup for fish"),
    ),
    "config": (
        ("pin config publish flags flags/", "publish a folder as the next version of bundle flags"),
        ("pin config roll flags 3", "make an earlier version the current one"),
        ("pin config diff flags 3 4", "what changed between two versions"),
        ("pin config view", "every setting of `pin`, and where it comes from"),
    ),
    "cp": (
        ("pin cp web:/var/log/app.log .", "a file of the newest replica of web into this folder"),
        ("pin cp conf web/abcde:/tmp/conf", "a folder into one replica"),
        ("pin cp web:/data - --ended > data.tar", "a folder of a container that has ended, as an archive"),
    ),
    "crds": (
        ("pin crds", "the CustomResourceDefinitions as YAML"),
        ("pin crds | kubectl apply --server-side -f -", "add the kinds to a cluster"),
    ),
    "delete": (
        ("pin delete web", "delete one workload"),
        ("pin delete web resize --yes", "delete two without a question"),
    ),
    "deploy": (
        ("pin deploy hello --image hello:dev --port 8080", "write hello.yaml, and deploy it"),
        ("pin deploy shop/", "deploy all files of a folder, or none"),
        ("pin deploy resize.yaml --tasks-from months", "a job set with a task for each line of the list"),
        ("pin deploy shop --version 1.4 -p landing", "deploy a published build"),
    ),
    "down": (("pin down", "stop the platform, and keep its data"), ("pin down --purge", "delete its data, too")),
    "edit": (
        ("pin edit web", "change web in your editor"),
        ("pin edit web --set memory=128Mi --remove gpus", "set and remove fields, without an editor"),
        ("EDITOR=nano pin edit web --no-wait", "with another editor, without following the rollout"),
    ),
    "endpoints": (
        ("pin endpoints web", "the members of web's serverset, and replicas that are missing"),
        ("pin endpoints search -p ads -o json", "of a workload of another project, for programs"),
    ),
    "events": (("pin events web", "the events of web and of its objects"), ("pin events web -o json", "for programs")),
    "files": (
        ("pin files web /etc", "the folder /etc of the newest replica of web"),
        ("pin files resize/12 /out --ended", "what a task has left, also if it has failed"),
    ),
    "get": (
        ("pin get -A --wrong", "workloads of all projects that have a problem"),
        ("pin get web", "web in a few lines"),
        ("pin get services --watch", "services, and their changes"),
    ),
    "history": (
        ("pin history web", "what happened to web, also after it was deleted"),
        ("pin history --limit 200", "what happened in the whole project lately"),
    ),
    "heal": (("pin heal web", "remove the fault"), ("pin heal web --no-wait", "without waiting until web is ready")),
    "image": (
        ("pin image load hello/ --as hello:dev", "build a folder with a Dockerfile"),
        ("pin image load . --as shop:1.4 -f dev.Dockerfile --build-arg A=1", "another file, with an argument"),
        ("pin image list", "the images that workloads can use"),
    ),
    "import": (
        ("pin import deployment/web > web.yaml", "the Deployment as a workload file"),
        ("pin import --all -n shop -o shop/", "everything in a namespace, a file each"),
        ("pin import -f chart.yaml -o shop/", "a rendered chart, without a cluster"),
        ("pin import deployment/web --adopt", "make it a workload, without restarting a pod"),
    ),
    "install": (
        ("pin install --context prod --dry-run", "what would be applied to a cluster"),
        ("pin install --context prod --domain apps.example.com", "install the platform there"),
    ),
    "kubectl": (("pin kubectl get pods -A", "all pods"), ("pin kubectl describe node node-main", "one node")),
    "login": (
        ("pin login https://desk.example.com", "sign in by your browser"),
        ("pin login --out", "sign out"),
    ),
    "logs": (
        ("pin logs web --follow", "new lines of all replicas"),
        ("pin logs resize/12 --gone", "task 12, also after its pod is deleted"),
        ("pin logs web --since 10m -c proxy", "another container"),
    ),
    "pause": (
        ("pin pause web --because 'looking at errors'", "stop its rollout"),
        ("pin pause nightly", "start no more runs of a periodic job"),
    ),
    "open": (
        ("pin open web", "the page of web in your browser, signed in"),
        ("pin open --print", "print the address instead, for a browser elsewhere"),
        ("pin open --sign-out", "end your sessions in all browsers"),
    ),
    "plan": (
        ("pin plan web.yaml", "what a deploy would change, and why it would be refused"),
        ("pin plan web.yaml -o yaml --offline", "the Kubernetes objects of a first deploy"),
    ),
    "port-forward": (
        ("pin port-forward web", "the port of web"),
        ("pin port-forward web/abcde 9000:8080", "port 8080 of one replica, at localhost:9000"),
    ),
    "project": (
        ("pin project", "your projects"),
        ("pin project ads", "members, quota and unfinished work of ads"),
        ("pin project create ads --owner team-ads --member ann=owner", "a new project"),
        ("pin project add-member ads group:crew --role deployer", "let a group deploy there"),
    ),
    "provenance": (
        ("pin provenance shop -p landing", "from the commit to the running replicas"),
        ("pin provenance shop -o json", "for programs"),
    ),
    "ps": (
        ("pin ps web", "processes and sockets of the replicas of web"),
        ("pin ps web/abcde -c logs -o json", "of another container of one replica, for programs"),
    ),
    "publish": (
        ("pin publish shop.yaml --version 1.4", "publish the file of the checked-out commit"),
        ("pin publish shop.yaml --version 1.4 --image shop=sha256:…", "with an image's digest"),
    ),
    "rerun": (
        ("pin rerun resize --reason OutOfMemory --memory 1Gi", "tasks that ran out of memory, with more"),
        ("pin rerun nightly", "one run of a periodic job now"),
    ),
    "restart": (
        ("pin restart web", "recreate its replicas one after the other"),
        ("pin restart web --no-wait", "and return"),
    ),
    "resume": (("pin resume web", "continue a rollout"), ("pin resume nightly", "continue a schedule")),
    "review": (("pin review", "approve the checked-out commit"), ("pin review 4f2a91c", "approve another one")),
    "rollback": (
        ("pin rollback web", "to the last revision that differs"),
        ("pin rollback web --to 3", "to revision 3, as pin show lists it"),
    ),
    "runtime": (
        ("pin runtime list", "the runtimes, and how many workloads have each"),
        ("pin runtime plan 7", "what runtime 7 would do to every workload"),
        ("pin runtime roll 7", "roll it out, wave by wave"),
    ),
    "scale": (("pin scale web 3", "three replicas"), ("pin scale resize 20", "20 tasks at a time")),
    "secret": (
        ("pin secret create db-password --from-file password.txt", "a new secret of your default project"),
        ("pin secret rotate db-password --from-file next.txt", "its next version, for running replicas, too"),
        ("pin secret show db-password", "versions, grants and last readers, without values"),
        ("pin secret grant db-password workload:ads/web", "another project's workload may name it"),
    ),
    "shell": (
        ("pin shell web", "a shell in the newest replica"),
        ("pin shell web/abcde -- ls /data", "a program in one replica"),
    ),
    "show": (("pin show web", "everything known about web"), ("pin show web -o json", "for programs")),
    "status": (("pin status", "the state of every part"), ("pin status -o wide", "with pids, addresses and logs")),
    "top": (
        ("pin top --sort-by memory", "workloads, those with the most memory first"),
        ("pin top web --watch", "each replica of web, every ten seconds"),
    ),
    "trust": (
        ("pin trust", "how to make programs trust HTTPS of this platform"),
        ("pin trust --name demo", "of another platform"),
    ),
    "uninstall": (
        ("pin uninstall --context prod", "remove the platform, and keep what runs"),
        ("pin uninstall --context prod --workloads", "delete all workloads, too"),
    ),
    "up": (
        ("pin up", "start a platform"),
        ("pin up --name demo --simulated", "start another one, without a real node"),
        ("pin up --with prometheus", "with Prometheus, which scrapes its parts"),
    ),
    "version": (("pin version", "the version of pin"), ("pin --version", "the same")),
    "wait": (
        ("pin wait web --timeout 60", "until web is ready"),
        ("pin wait web --for gone", "until it is deleted"),
    ),
    "whoami": (("pin whoami", "your name, and your role in each project"), ("pin whoami -o json", "for programs")),
    "why": (
        ("pin why web", "the cause, and the next command"),
        ("pin why web -v", "with the path from the workload to the cause"),
        ("pin why resize/12", "of one task"),
    ),
}
"""By command: at least two, each with its meaning."""


def format_examples(command: str) -> str:
    """The end of a command's help. The mark keeps click from joining the lines."""
    lines = [f"  {line}\n      {meaning}" for line, meaning in EXAMPLES.get(command, ())]
    return "\b\nExamples:\n" + "\n".join(lines) if lines else ""
