/** Small components that all pages share. */
import { html, useEffect, useRef, useState } from "./dom.js";
import { useNow } from "./data.js";
import { REASONS } from "./reasons.js";
import { ageText, cleanText } from "./text.js";

/** Severity of a workload or reason as a colour and a shape: ok, bad, warn or wait. */
export function severityOf({ failed = false, done = false, reason = "" }) {
  if (failed) return "bad";
  if (REASONS[reason]?.severity === "error") return done ? "warn" : "bad";
  return done ? "ok" : "wait";
}

export function severityOfReason(reason) {
  return { ok: "ok", error: "bad" }[REASONS[reason]?.severity] ?? "wait";
}

/** Severity of the state of a replica or container. */
export function severityOfState(state) {
  if (["Ready", "Running", "Succeeded", "Completed"].includes(state)) return "ok";
  return ["Pending", "Starting", "Waiting", "ContainerCreating", "PodInitializing", "Terminating"].includes(state)
    ? "wait"
    : "bad";
}

const SHAPES = {
  ok: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm-1 10L3.6 7.6l1.3-1.3L7 8.4l4.1-4.1 1.3 1.3z",
  bad: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm-.9 3h1.8v5H7.1zm0 6.2h1.8V12H7.1z",
  warn: "M8 1.2 15.5 14.5H.5zM7.1 6v4.4h1.8V6zm0 5.4V13h1.8v-1.6z",
  wait: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 1.8a5.2 5.2 0 1 1 0 10.4A5.2 5.2 0 0 1 8 2.8zM7.1 4.5v4.1l2.9 1.7.9-1.5-2-1.2V4.5z",
};

export function Mark({ severity }) {
  return html`<svg class="mark ${severity}" viewBox="0 0 16 16" aria-hidden="true">
    <path fill-rule="evenodd" d=${SHAPES[severity]} />
  </svg>`;
}

/** A reason with its colour; its meaning is its title. */
export function Reason({ reason, severity }) {
  return html`<span class="reason ${severity ?? severityOfReason(reason)}" title=${REASONS[reason]?.meaning ?? ""}
    >${cleanText(reason, 64)}</span
  >`;
}

export function Age({ time }) {
  const now = useNow();
  return time ? html`<time datetime=${time} title=${time}>${ageText(time, now)}</time>` : null;
}

/** Counts such as 2 of 3, with a bar. */
export function Count({ ready, wanted, severity }) {
  const share = wanted > 0 ? Math.min(1, ready / wanted) : 1;
  return html`<span class="count"
    ><span class="bar" aria-hidden="true"
      ><span class="fill ${severity}" style=${{ width: `${100 * share}%` }}></span></span
    >${ready}/${wanted}</span
  >`;
}

export function Copy({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<span class="command"
    ><code>${text}</code
    ><button type="button" class="quiet" onClick=${copy} aria-label="Copy the command">
      ${copied ? "Copied" : "Copy"}
    </button></span
  >`;
}

/** The errors of a refusal, each with what to do next. */
export function Problems({ errors, title }) {
  return html`<div class="problems" role="alert">
    ${title && html`<p class="title">${title}</p>`}
    ${errors.map(
      (each) =>
        html`<div class="problem">
          <p><${Reason} reason=${each.reason} severity="bad" /> ${cleanText(each.detail)}</p>
          ${each.note && html`<p class="note">${cleanText(each.note)}</p>`}
          ${each.next && html`<p class="next">Next: ${cleanText(each.next)}</p>`}
        </div>`,
    )}
  </div>`;
}

/** The problem of a read. What was known before stays below it. */
export function Trouble({ problem, absent }) {
  if (!problem) return null;
  if (problem.status === 404 && absent)
    return html`<div class="empty">
      <h2>${absent}</h2>
      <p>It does not exist, or you have no role in its project.</p>
    </div>`;
  return html`<${Problems} errors=${problem.errors ?? [{ reason: "Internal", detail: problem.message }]} />`;
}

export function Loading({ rows = 6 }) {
  return html`<div class="loading" aria-busy="true" aria-label="Loading">
    ${Array.from({ length: rows }, (_, index) => html`<div key=${index} class="bone"></div>`)}
  </div>`;
}

/** The heading of a page. It takes the focus when the page is opened, so that a screen reader begins there. */
export function Heading({ children, title }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} · PinCompute`;
    if (document.activeElement === document.body || document.activeElement?.closest("nav, a"))
      heading.current?.focus({ preventScroll: true });
  }, [title]);
  return html`<h1 ref=${heading} tabindex="-1">${children ?? title}</h1>`;
}

export function Crumbs({ links }) {
  return html`<nav class="crumbs" aria-label="Breadcrumb">
    <ol>
      ${links.map(([text, address]) => html`<li key=${address}><a href=${address}>${text}</a></li>`)}
    </ol>
  </nav>`;
}

/** A table that scrolls by itself where it is too wide; `rows` are its elements of rows. */
export function Table({ label, columns, rows }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table>
      <thead>
        <tr>
          ${columns.map((each) => (each ? html`<th scope="col">${each}</th>` : html`<td></td>`))}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
}

/** The field by which a list is searched; the key `/` of the palette is another one. */
export function SearchField({ placeholder, value, onChange }) {
  return html`<label class="grow"
    ><span class="hidden">Search</span
    ><input
      id="search"
      type="search"
      placeholder=${placeholder}
      value=${value}
      onInput=${(event) => onChange(event.target.value)}
  /></label>`;
}

/** Links to the views of a page; the chosen one is in its address. */
export function Tabs({ label, tabs, chosen }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${tabs.map(
      ([key, text, address, count]) =>
        html`<a key=${key} href=${address} aria-current=${key === chosen ? "page" : undefined}
          >${text}${count != null && html` <span class="number">${count.toLocaleString("en")}</span>`}</a
        >`,
    )}
  </nav>`;
}
