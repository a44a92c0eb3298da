/** The nodes of all clusters, for administrators, and what runs on one. */
import { apiPath } from "./api.js";
import { useResource, useSettled } from "./data.js";
import { html, useState } from "./dom.js";
import { Age, Crumbs, Heading, Loading, Mark, Reason, SearchField, Trouble, severityOfState } from "./parts.js";
import { moveFocus } from "./page_workloads.js";
import { workloadAddress } from "./router.js";
import { cleanText } from "./text.js";

const PAGE = 500;

export function Nodes() {
  const [typed, setTyped] = useState("");
  const search = useSettled(typed, 80);
  const { data, problem } = useResource(apiPath(["nodes"], { search, sort: "urgency", limit: PAGE }), {
    matches: ({ event }) => event === "nodes",
    everyMs: 3000,
    keep: true,
  });
  return html`<header class="head"><${Heading} title="Nodes" /></header>
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${SearchField} placeholder="Search nodes" value=${typed} onChange=${setTyped} />
    </form>
    <${Trouble} problem=${problem} />
    ${!data && !problem && html`<${Loading} />`}
    ${
      data &&
      html`<p class="muted">
          ${data.total.toLocaleString("en")} nodes${data.total > PAGE ? `; the first ${PAGE} are shown` : ""}
        </p>
        <ol class="rows" onKeyDown=${moveFocus}>
          ${data.items.map(
            (each) =>
              html`<li key=${each.uid}>
                <a class="row node-row" href=${`/ui/nodes/${encodeURIComponent(each.name)}`}>
                  <${Mark} severity=${!each.ready ? "bad" : each.schedulable ? "ok" : "warn"} />
                  <span class="name"><b>${each.name}</b><small>${each.cluster}</small></span>
                  <span>${each.ready ? (each.schedulable ? "ready" : "cordoned") : "not ready"}</span>
                  <span class="message">${cleanText(`${each.reason} ${each.message}`, 300)}</span>
                </a>
              </li>`,
          )}
        </ol>`
    }`;
}

export function Node({ node }) {
  const { data, problem } = useResource(apiPath(["replicas"], { node, limit: PAGE }), {
    matches: ({ event, item }) => event === "replicas" && item.node === node,
    everyMs: 3000,
  });
  return html`<${Crumbs} links=${[["Nodes", "/ui/nodes"]]} />
    <header class="head"><${Heading} title=${node} /></header>
    <${Trouble} problem=${problem} />
    ${!data && !problem && html`<${Loading} />`}
    ${
      data &&
      html`<p class="muted">${data.total.toLocaleString("en")} replicas</p>
        <ol class="rows" onKeyDown=${moveFocus}>
          ${data.items.map(
            (each) =>
              html`<li key=${each.uid}>
                <a class="row node-row" href=${workloadAddress(each.project, each.workload)}>
                  <${Mark} severity=${severityOfState(each.state)} /><span class="name"
                    ><b>${each.name}</b><small>${each.project}</small></span
                  ><${Reason} reason=${each.state} severity=${severityOfState(each.state)} /><span class="message"
                    ><${Age} time=${each.since}
                  /></span>
                </a>
              </li>`,
          )}
        </ol>`
    }`;
}
