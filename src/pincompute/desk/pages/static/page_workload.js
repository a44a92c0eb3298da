/** A workload: why it is not as wanted, what it consists of, how it became what it is, and what its programs print. */
import { apiPath, workloadPath } from "./api.js";
import { ACTIONS, ActionDialog, actionOfCommand, actionsOf } from "./actions.js";
import { Batch } from "./batch.js";
import { DeleteDialog } from "./delete.js";
import { useResource } from "./data.js";
import { html, useState } from "./dom.js";
import { isAbout } from "./live.js";
import { Logs } from "./logs.js";
import { Age, Copy, Count, Crumbs, Heading, Loading, Mark, Reason, Tabs, Trouble, severityOf } from "./parts.js";
import { projectAddress, useAddress, workloadAddress } from "./router.js";
import { Revisions } from "./revisions.js";
import { cleanText, kindText, safeAddress } from "./text.js";
import { Timeline } from "./timeline.js";
import { Tree } from "./tree.js";

export function Workload({ project, name }) {
  const { query } = useAddress();
  const matches = isAbout(project, name);
  const detail = useResource(apiPath(workloadPath(project, name, "account")), { matches, everyMs: 2000 });
  const why = useResource(apiPath(workloadPath(project, name, "why")), { matches, everyMs: 2000 });
  const [dialog, setDialog] = useState(null);
  const crumbs = html`<${Crumbs}
    links=${[
      ["Workloads", "/ui/workloads"],
      [project, projectAddress(project)],
    ]}
  />`;
  const reload = () => {
    detail.reload();
    why.reload();
  };
  if (!detail.data)
    return html`${crumbs}
      <header class="head"><${Heading} title=${name} /></header>
      ${detail.problem ? html`<${Gone} project=${project} name=${name} problem=${detail.problem} />` : html`<${Loading} />`}`;
  const { summary } = detail.data;
  const tab = query.tab ?? "overview";
  const tabs = [
    ["overview", "Overview"],
    ["logs", "Logs"],
    ["history", "History"],
    ["revisions", "Revisions", detail.data.history.length],
  ];
  return html` ${crumbs}
    <${Title} summary=${summary} resource=${detail.data.resource} act=${setDialog} />
    <${Why} project=${project} summary=${summary} why=${why.data} act=${setDialog} />
    <${Trouble} problem=${detail.problem ?? why.problem} />
    <${Tabs}
      label="Views of the workload"
      chosen=${tab}
      tabs=${tabs.map(([key, text, count]) => [key, text, workloadAddress(project, name, key === "overview" ? "" : `?tab=${key}`), count])}
    />
    ${tab === "overview" && html`<${Overview} project=${project} name=${name} detail=${detail.data} act=${setDialog} />`}
    ${tab === "logs" && html`<${Logs} project=${project} name=${name} replicas=${detail.data.replicas} />`}
    ${tab === "history" && html`<${Timeline} project=${project} name=${name} events=${detail.data.events} />`}
    ${tab === "revisions" && html`<${Revisions} detail=${detail.data} act=${setDialog} />`}
    ${
      dialog?.action === "delete"
        ? html`<${DeleteDialog}
            project=${project}
            name=${name}
            uid=${summary.uid}
            natives=${detail.data.natives}
            replicas=${detail.data.replicas.length}
            close=${() => setDialog(null)}
          />`
        : dialog &&
          html`<${ActionDialog} ...${{ project, name, ...dialog }} close=${() => setDialog(null)} done=${reload} />`
    }`;
}

function Title({ summary, resource, act }) {
  const severity = severityOf(summary);
  const address = safeAddress(summary.address);
  return html`<header class="head">
    <div class="title">
      <${Heading} title=${summary.name}
        ><${Mark} severity=${severity} />${summary.name}<span class="revision"
          >@${summary.revision}${summary.attempt > 1 ? `.${summary.attempt}` : ""}</span
        ><//
      >
      <p class="facts">
        <span>${kindText(summary.kind)}</span>
        <code class="image">${cleanText(summary.image, 200)}</code>
        ${address && html`<a href=${address} rel="noreferrer" target="_blank">${address}</a>`}
        ${summary.simulated && html`<span class="tag">simulated nodes</span>`}
        ${summary.expires && html`<span>ends ${summary.expires}</span>`}
      </p>
    </div>
    <${ActionMenu} resource=${resource} replicas=${summary.wanted} act=${act} />
  </header>`;
}

function ActionMenu({ resource, replicas, act }) {
  const choose = (action) => act({ action, values: action === "scale" ? { replicas } : {} });
  return html`<div class="actions" role="group" aria-label="Actions">
    ${actionsOf(resource).map(
      (each) => html`<button key=${each} type="button" onClick=${() => choose(each)}>${ACTIONS[each].title}</button>`,
    )}
    <button type="button" class="danger-quiet" onClick=${() => act({ action: "delete" })}>Delete</button>
  </div>`;
}

/** The answer of `pin why`, at the top of the page. What to do next is a button where the desk can do it. */
function Why({ project, summary, why, act }) {
  const shown = why ?? { reason: summary.reason, what: summary.message, next: summary.next, isProblem: summary.failed };
  const severity = shown.isProblem ? "bad" : severityOf(summary);
  return html`<section class="why ${severity}" aria-label="Why" aria-live="polite">
    <p class="what">
      <${Reason} reason=${shown.reason} severity=${severity} /> <span>${cleanText(shown.what)}</span>${" "}<${Count}
        ready=${summary.ready}
        wanted=${summary.wanted}
        severity=${severity}
      />
    </p>
    ${shown.where && html`<p class="muted">${cleanText(shown.where, 300)}</p>`}
    ${shown.note && html`<p class="note">${cleanText(shown.note)}</p>`}
    <${Next} command=${shown.next} project=${project} summary=${summary} act=${act} />
    ${
      shown.also &&
      html`<p class="also"><${Reason} reason=${shown.also.reason} severity="bad" /> ${cleanText(shown.also.what)}</p>
        <${Next} command=${shown.also.next} project=${project} summary=${summary} act=${act} />`
    }
    ${
      shown.path?.length > 1 &&
      html`<details>
        <summary>How this was found</summary>
        <ol class="path">
          ${shown.path.map(
            (each) =>
              html`<li class=${each.blocked ? "bad" : "ok"}>
                <b>${cleanText(each.object, 200)}</b> ${cleanText(each.evidence, 500)} <${Age} time=${each.since} />
              </li>`,
          )}
        </ol>
      </details>`
    }
  </section>`;
}

function Next({ command, project, summary, act }) {
  if (!command) return null;
  const action = actionOfCommand(command, summary.name);
  const view = /^pin (logs|show|history) (\S+)/.exec(command);
  const tab = { logs: "logs", show: "overview", history: "history" }[view?.[1]];
  return html`<p class="next">
    ${action && html`<button type="button" class="primary" onClick=${() => act(action)}>${ACTIONS[action.action].title}…</button>`}
    ${view?.[2] === summary.name && html`<a class="button primary" href=${workloadAddress(project, summary.name, `?tab=${tab}`)}>Show ${tab}</a>`}
    <${Copy} text=${cleanText(command, 500)} />
  </p>`;
}

function Overview({ project, name, detail, act }) {
  const isBatch = detail.summary.kind === "PinterestJobSet";
  return html` ${isBatch && html`<${Batch} project=${project} name=${name} act=${act} />`}
    <section>
      <h2>Objects</h2>
      <${Tree} project=${project} name=${name} detail=${detail} />
    </section>`;
}

/** A workload that is no more has its history; one that never was, or of a hidden project, has nothing. */
function Gone({ project, name, problem }) {
  const last = useResource(problem.status === 404 ? apiPath(workloadPath(project, name, "last-state")) : null);
  if (problem.status !== 404 || !last.data)
    return html`<${Trouble} problem=${problem} absent=${`There is no workload ${name}`} />`;
  return html`<section class="why wait" aria-label="Why">
      <p class="what">
        ${name} is gone. It was last seen at <time>${last.data.seenAt}</time>:${" "}<${Reason}
          reason=${last.data.workload.reason}
        />${" "}${cleanText(last.data.workload.message)}
      </p>
    </section>
    <${Timeline} project=${project} name=${name} events=${[]} />`;
}
