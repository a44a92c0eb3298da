/** What happened to a workload, newest first, by day; and the events that Kubernetes has recorded. */
import { apiPath, read, workloadPath } from "./api.js";
import { useResource } from "./data.js";
import { html, useState } from "./dom.js";
import { isAbout } from "./live.js";
import { Age, Loading, Reason, Trouble, severityOfReason } from "./parts.js";
import { cleanText, clockText, dayText } from "./text.js";

const SEVERITIES = {
  launch: "ok",
  created: "ok",
  failed: "bad",
  restart: "bad",
  evicted: "bad",
  node: "warn",
  deleted: "warn",
};

export function Timeline({ project, name, events }) {
  const parts = name ? workloadPath(project, name, "history") : ["projects", project, "history"];
  const first = useResource(apiPath(parts), { matches: name ? isAbout(project, name) : undefined, everyMs: 3000 });
  const [older, setOlder] = useState([]);
  const next = (older.at(-1) ?? first.data)?.next;
  const showOlder = async () => {
    const page = await read(apiPath(parts, { before: next })).catch(() => null);
    if (page) setOlder([...older, page]);
  };
  const seen = new Set();
  const entries = [first.data, ...older]
    .flatMap((each) => each?.entries ?? [])
    .filter((each) => !seen.has(each.number) && seen.add(each.number));
  return html`<div class="columns">
    <section>
      <h2>History</h2>
      <${Trouble} problem=${first.problem} absent="Nothing is recorded yet" />
      ${first.loading && !first.problem ? html`<${Loading} />` : html`<${Days} entries=${entries} showName=${!name} />`}
      ${next && html`<p class="more"><button type="button" onClick=${showOlder}>Show older</button></p>`}
    </section>
    ${
      name &&
      html`<section>
        <h2>Kubernetes events</h2>
        <${Events} events=${events} />
      </section>`
    }
  </div>`;
}

function Days({ entries, showName }) {
  const days = new Map();
  for (const entry of entries) {
    const day = dayText(entry.at);
    days.set(day, [...(days.get(day) ?? []), entry]);
  }
  return [...days].map(
    ([day, found]) =>
      html`<h3 class="day" key=${day}>${day}</h3>
        <ol class="timeline">
          ${found.map((each) => html`<${Entry} key=${each.number} entry=${each} showName=${showName} />`)}
        </ol>`,
  );
}

function Entry({ entry, showName }) {
  const severity = entry.event === "state" ? severityOfReason(entry.reason) : (SEVERITIES[entry.event] ?? "wait");
  const launch =
    entry.launch &&
    Object.entries(entry.launch)
      .filter(([, value]) => value != null)
      .map(([phase, value]) => `${phase.replace(/S$/, "")} ${value} s`)
      .join(", ");
  return html`<li class=${severity}>
    <time datetime=${entry.at} title=${entry.at}>${clockText(entry.at)}</time>
    <div>
      <p>
        <b>${entry.event}</b>
        ${showName && ` ${entry.workload}`}${entry.revision > 0 && ` @${entry.revision}`}
        ${entry.reason && html` <${Reason} reason=${entry.reason} />`}
        ${entry.replica && html` <span class="muted">${entry.replica}${entry.node && ` on ${entry.node}`}</span>`}
      </p>
      ${entry.message && html`<p>${cleanText(entry.message)}</p>`}${launch && html`<p class="muted">${launch}</p>`}
      ${entry.caller && html`<p class="muted">by ${cleanText(entry.caller, 200)}</p>`}
    </div>
  </li>`;
}

function Events({ events }) {
  if (events.length === 0) return html`<p class="muted">None are kept.</p>`;
  return html`<ol class="timeline">
    ${[...events].reverse().map(
      (each) =>
        html`<li class=${each.warning ? "bad" : "wait"}>
          <${Age} time=${each.lastSeen} />
          <div>
            <p>
              <b>${cleanText(each.reason, 100)}</b>${" "}<span class="muted"
                >${cleanText(each.involvedObject, 200)}${each.count > 1 && ` ${each.count} times`}</span
              >
            </p>
            <p>${cleanText(each.note)}</p>
          </div>
        </li>`,
    )}
  </ol>`;
}
