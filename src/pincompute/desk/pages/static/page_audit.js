/** The audit log: who did what, newest first. */
import { apiPath, read } from "./api.js";
import { useResource } from "./data.js";
import { html, useState } from "./dom.js";
import { Age, Crumbs, Heading, Loading, Reason, Table, Trouble } from "./parts.js";
import { projectAddress, workloadAddress } from "./router.js";
import { cleanText, countText } from "./text.js";

export function AuditPage() {
  return html`<header class="head"><${Heading} title="Audit" /></header>
    <${Audit} project="" />`;
}

export function Audit({ project }) {
  const parts = project ? ["projects", project, "audit"] : ["audit"];
  const first = useResource(apiPath(parts));
  const [older, setOlder] = useState([]);
  const [problem, setProblem] = useState(null);
  const next = (older.at(-1) ?? first.data)?.next;
  const showOlder = () => read(apiPath(parts, { before: next })).then((page) => setOlder([...older, page]), setProblem);
  const entries = [first.data, ...older].flatMap((each) => each?.entries ?? []);
  return html`<${Trouble} problem=${first.problem ?? problem} absent="There is no such log" />
    ${first.loading && html`<${Loading} />`}
    ${
      first.data &&
      html`<${Table}
        label="Audit log"
        columns=${["When", "Caller", "Act", "Object", "Note"]}
        rows=${entries.map((each) => html`<${Entry} key=${each.number} entry=${each} />`)}
      />`
    }
    ${next && html`<p class="more"><button type="button" onClick=${showOlder}>Show older</button></p>`}`;
}

function Entry({ entry }) {
  const [, name] = entry.object.split(/[ /]/);
  const object = cleanText(entry.object, 200);
  const submission = `${projectAddress(entry.project)}/submissions/${entry.submission}`;
  return html`<tr>
    <td><${Age} time=${entry.at} /></td>
    <td>${cleanText(entry.caller, 100)}</td>
    <td>${cleanText(entry.act, 200)}</td>
    <td>
      ${entry.project && name ? html`<a href=${workloadAddress(entry.project, name)}>${object}</a>` : object}
      ${" "}<small>${entry.project}</small>
      ${entry.project && entry.submission && html` <a class="muted" href=${submission}>submission</a>`}
    </td>
    <td class="wide">${cleanText(entry.note, 400)}</td>
  </tr>`;
}

export function Submission({ project, id }) {
  const { data, problem, loading } = useResource(apiPath(["projects", project, "submissions", id]));
  return html`<${Crumbs}
      links=${[
        ["Projects", "/ui/projects"],
        [project, projectAddress(project)],
      ]}
    />
    <header class="head"><${Heading} title=${id} /></header>
    <${Trouble} problem=${problem} absent=${`There is no submission ${id}`} />
    ${loading && !problem && html`<${Loading} />`}
    ${
      data &&
      html`<dl>
          <dt>State</dt>
          <dd>${data.state}</dd>
          <dt>Act</dt>
          <dd>${data.verb} <a href=${workloadAddress(project, data.name)}>${data.name}</a></dd>
          <dt>Caller</dt>
          <dd>${cleanText(data.caller, 200)}</dd>
          <dt>Accepted</dt>
          <dd><${Age} time=${data.acceptedAt} /></dd>
          ${
            data.attempts > 0 &&
            html`<dt>Delivery</dt>
              <dd>${countText(data.attempts, "attempt")} ${cleanText(data.lastDeliveryError)}</dd>`
          }
        </dl>
        ${data.errors.map((each) => html`<p><${Reason} reason=${each.reason} /> ${cleanText(each.detail)}</p>`)}`
    }`;
}
