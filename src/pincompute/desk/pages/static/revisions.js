/** The revisions of a workload with what each changed, and the way back to one. */
import { html } from "./dom.js";
import { Age } from "./parts.js";
import { cleanText } from "./text.js";

export function Revisions({ detail, act }) {
  const { summary, history } = detail;
  const newest = [...history].reverse();
  if (newest.length === 0) return html`<div class="empty"><h2>No revisions yet</h2></div>`;
  return html`<ol class="revisions">
    ${newest.map(
      (each) =>
        html`<li key=${each.number} class=${each.number === summary.revision ? "current" : ""}>
          <header>
            <h2>@${each.number}</h2>
            ${" "}<${Age} time=${each.createdAt} />
            <${WayBack} number=${each.number} current=${summary.revision} act=${act} />
          </header>
          ${
            each.changes.length > 0
              ? html`<ul class="diff">
                  ${each.changes.map((change) => html`<${Change} text=${change} />`)}
                </ul>`
              : html`<p class="muted">
                  ${each.number === history[0].number ? "The oldest revision that is kept." : "No field has changed."}
                </p>`
          }
          ${Object.entries(each.images).map(([container, image]) => html`<p class="muted"><code>${container}: ${cleanText(image, 200)}</code></p>`)}
        </li>`,
    )}
  </ol>`;
}

function WayBack({ number, current, act }) {
  if (number === current) return html`<span class="tag">current</span>`;
  const rollBack = () => act({ action: "rollback", values: { to: number } });
  return html`<button type="button" onClick=${rollBack}>Roll back to @${number}</button>`;
}

/** `replicas 1 -> 3`, or `port: 8080` for a new field. */
function Change({ text }) {
  const clean = cleanText(text, 600);
  const found = /^(\S+) (.*) -> (.*)$/s.exec(clean);
  if (!found) return html`<li><ins>${clean}</ins></li>`;
  return html`<li>
    <code>${found[1]}</code> <del>${found[2]}</del> <span aria-hidden="true">→</span> <ins>${found[3]}</ins>
  </li>`;
}
