/** The objects of a workload as a tree: workload, Kubernetes objects, replicas, containers. */
import { html, useState } from "./dom.js";
import { Age, Mark, severityOf, severityOfState } from "./parts.js";
import { workloadAddress } from "./router.js";
import { bytesText, cleanText, countText, kindText } from "./text.js";

const CONTROLLERS = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "PyTorchJob", "TFJob"];
const SHOWN_REPLICAS = 20;
const MORE_REPLICAS = 200;

/** The replicas below the object that controls them: the one with the longest name that theirs begins with. */
function group(detail) {
  const controllers = detail.natives
    .filter((each) => CONTROLLERS.includes(each.name.split("/")[0]))
    .sort((a, b) => b.name.length - a.name.length);
  const below = new Map();
  for (const replica of detail.replicas) {
    const native = controllers.find((each) => replica.name.startsWith(`${each.name.split("/")[1]}-`)) ?? null;
    below.set(native, [...(below.get(native) ?? []), replica]);
  }
  return below;
}

export function Tree({ project, name, detail }) {
  const below = group(detail);
  return html`<div class="tree">
    <p class="node">
      <${Mark} severity=${severityOf(detail.summary)} /><b>${kindText(detail.summary.kind)}</b> ${name}
    </p>
    <ul>
      ${detail.natives.map(
        (each) =>
          html`<li key=${each.name}>
            <p class="node">
              <b>${each.name.split("/")[0]}</b> ${each.name.split("/")[1]} <${Age} time=${each.since} />
            </p>
            ${below.has(each) && html`<${Replicas} project=${project} name=${name} replicas=${below.get(each)} />`}
          </li>`,
      )}
      ${below.has(null) && html`<li><${Replicas} project=${project} name=${name} replicas=${below.get(null)} /></li>`}
    </ul>
    ${detail.natives.length === 0 && html`<p class="muted">Nothing is created yet.</p>`}
  </div>`;
}

function Replicas({ project, name, replicas }) {
  const [limit, setLimit] = useState(SHOWN_REPLICAS);
  const sorted = [...replicas].sort(
    (a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, "en", { numeric: true }),
  );
  return html`<ul>
    ${sorted.slice(0, limit).map((each) => html`<${Replica} key=${each.name} project=${project} name=${name} replica=${each} />`)}
    ${
      sorted.length > limit &&
      html`<li>
        <button type="button" onClick=${() => setLimit(limit + MORE_REPLICAS)}>
          Show more of ${countText(sorted.length, "replica")}
        </button>
      </li>`
    }
  </ul>`;
}

/** Those with a problem come first. */
function rank(replica) {
  return { bad: 0, wait: 1, ok: 2 }[severityOfState(replica.state)];
}

function Replica({ project, name, replica }) {
  const use = [replica.cpuMillicores != null && `${replica.cpuMillicores}m CPU`, bytesText(replica.memoryBytes)]
    .filter(Boolean)
    .join(", ");
  return html`<li>
    <details>
      <summary class="node">
        <${Mark} severity=${severityOfState(replica.state)} />
        <span class="replica">${replica.name}</span>
        <span class="state">${cleanText(replica.state, 64)}</span>
        ${replica.restarts > 0 && html`<span class="warn-text">${countText(replica.restarts, "restart")}</span>`}
        <span class="muted">${replica.node}</span>
        <span class="muted">${use}</span>
        <${Age} time=${replica.since} />
      </summary>
      <ul>
        ${replica.containers.map(
          (each) =>
            html`<li key=${each.name} class="node">
              <${Mark} severity=${severityOfState(each.state)} />
              <a
                href=${workloadAddress(project, name, `?${new URLSearchParams({ tab: "logs", replica: replica.name, container: each.name })}`)}
                title="Logs of this container"
                >${each.name}</a
              >
              <span>${cleanText(each.state, 64)}</span>
              ${each.restarts > 0 && html`<span class="warn-text">${countText(each.restarts, "restart")}</span>`}
              ${each.exitCode != null && html`<span class="muted">last exit ${each.exitCode}</span>`}
              <code class="muted">${cleanText(each.image, 120)}</code>
            </li>`,
        )}
      </ul>
    </details>
  </li>`;
}
