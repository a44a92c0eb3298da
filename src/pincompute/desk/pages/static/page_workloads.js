/** All workloads of the caller: those with a problem first, found by any text, and always as they are now. */
import { apiPath } from "./api.js";
import { useResource, useSettled } from "./data.js";
import { html, useEffect, useRef, useState } from "./dom.js";
import { Age, Count, Heading, Loading, Mark, Reason, SearchField, Tabs, Trouble, severityOf, severityOfReason } from "./parts.js";
import { changeQuery, useAddress, workloadAddress } from "./router.js";
import { cleanText, kindText } from "./text.js";
import { ofWorkloads, useWorkloadList } from "./workload_list.js";

const KINDS = ["Service", "StatefulSet", "Daemon", "CronJob", "JobSet", "TrainingJob"];
const MAX_REASONS = 8;

export function Workloads() {
  const { query } = useAddress();
  const [typed, setTyped] = useState(query.search ?? "");
  const search = useSettled(typed, 80);
  useEffect(() => changeQuery({ search }), [search]);
  const filters = { search, project: query.project, kind: query.kind };
  const list = useWorkloadList({ ...filters, state: query.state, reason: query.reason });
  const states = useResource(apiPath(["workloads"], { ...filters, count: "state", limit: 1, fields: "name" }), {
    matches: ofWorkloads,
    keep: true,
  });
  const reasons = useResource(
    apiPath(["workloads"], { ...filters, state: query.state, count: "reason", limit: 1, fields: "name" }),
    { matches: ofWorkloads, keep: true },
  );
  return html` <header class="head"><${Heading} title="Workloads" /></header>
    <${Filters} typed=${typed} setTyped=${setTyped} query=${query} />
    <${StateTabs} query=${query} page=${states.data} />
    <${ReasonChips} query=${query} counts=${reasons.data?.counts} />
    <${Trouble} problem=${list.problem} />
    ${list.ageS > 2 && html`<p class="stale" role="status">As of ${Math.round(list.ageS)} s ago: the cluster does not answer.</p>`}
    ${list.items ? html`<${WorkloadRows} list=${list} />` : !list.problem && html`<${Loading} rows=${12} />`}`;
}

function Filters({ typed, setTyped, query }) {
  const projects = useResource("/v1/projects").data ?? [];
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <${SearchField} placeholder="Search names, projects, reasons, messages, images" value=${typed} onChange=${setTyped} />
    <label
      ><span class="hidden">Project</span
      ><select value=${query.project ?? ""} onChange=${(event) => changeQuery({ project: event.target.value })}>
        <option value="">All projects</option>
        ${projects.slice(0, 500).map((each) => html`<option key=${each.project} value=${each.project}>${each.project}</option>`)}
      </select></label
    >
    <label
      ><span class="hidden">Kind</span
      ><select value=${query.kind ?? ""} onChange=${(event) => changeQuery({ kind: event.target.value })}>
        <option value="">All kinds</option>
        ${KINDS.map((each) => html`<option key=${each} value=${`Pinterest${each}`}>${kindText(`Pinterest${each}`)}</option>`)}
      </select></label
    >
  </form>`;
}

function StateTabs({ query, page }) {
  const counts = page?.counts ?? {};
  const address = (state) => {
    const words = new URLSearchParams({ ...query, state });
    words.delete("reason");
    if (!state) words.delete("state");
    return `/ui/workloads${words.size ? `?${words}` : ""}`;
  };
  const tabs = [
    ["", "All", address(""), page?.total],
    ...["failed", "waiting", "done"].map((each) => [
      each,
      { failed: "Failed", waiting: "Waiting", done: "As wanted" }[each],
      address(each),
      page && (counts[each] ?? 0),
    ]),
  ];
  return html`<${Tabs} label="State" tabs=${tabs} chosen=${query.state ?? ""} />`;
}

/** Problems by reason, the most frequent first; a click shows only these. */
function ReasonChips({ query, counts }) {
  const all = Object.entries(counts ?? {}).filter(
    ([reason]) => severityOfReason(reason) === "bad" || reason === query.reason,
  );
  if (all.length === 0) return html`<p class="chips muted">${counts && "Nothing has a problem."}</p>`;
  return html`<ul class="chips" aria-label="Problems by reason">
    ${all.slice(0, MAX_REASONS).map(
      ([reason, count]) =>
        html`<li key=${reason}>
          <button
            type="button"
            aria-pressed=${query.reason === reason}
            onClick=${() => changeQuery({ reason: query.reason === reason ? "" : reason })}
          >
            ${reason} <span class="number">${count.toLocaleString("en")}</span>
          </button>
        </li>`,
    )}
  </ul>`;
}

function WorkloadRows({ list }) {
  const end = useRef(null);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => entry.isIntersecting && list.showMore(), {
      rootMargin: "400px",
    });
    if (end.current) observer.observe(end.current);
    return () => observer.disconnect();
  }, [list.hasMore, list.items.length]);
  if (list.items.length === 0)
    return html`<div class="empty">
      <h2>No workloads here</h2>
      <p>Nothing matches. With a file, <code>pin deploy FILE</code> starts the first one.</p>
    </div>`;
  return html` <p class="hidden" role="status">${list.total} workloads</p>
    <ol class="rows" aria-busy=${list.loading} onKeyDown=${moveFocus}>
      ${list.items.map((each) => html`<${WorkloadRow} key=${each.uid} item=${each} />`)}
    </ol>
    ${
      list.hasMore &&
      html`<p class="more" ref=${end}>
        <button type="button" onClick=${list.showMore}>Show more of ${list.total.toLocaleString("en")}</button>
      </p>`
    }`;
}

export function WorkloadRow({ item }) {
  const severity = severityOf(item);
  return html`<li>
    <a class="row" href=${workloadAddress(item.project, item.name)}>
      <${Mark} severity=${severity} />
      <span class="name"><b>${item.name}</b><small>${item.project} · ${kindText(item.kind)}</small></span>
      <${Reason} reason=${item.reason} severity=${severity} />
      <span class="message">${cleanText(item.message, 300)}</span>
      <${Count} ready=${item.ready} wanted=${item.wanted} severity=${severity} />
      <${Age} time=${item.createdAt} />
    </a>
  </li>`;
}

/** The arrows, and j and k as in many lists, move between rows. */
export function moveFocus(event) {
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...event.currentTarget.querySelectorAll("a.row")];
  const next = rows[rows.indexOf(document.activeElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
