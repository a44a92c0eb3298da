/** A batch: all its tasks at a glance, failures by reason, and the way to run some again. */
import { html, useState } from "./dom.js";
import { Grid, countStates } from "./grid.js";
import { Age, Reason, Table, Trouble } from "./parts.js";
import { workloadAddress } from "./router.js";
import { STATES, attemptNumbers, taskOf, useTaskStates } from "./task_states.js";
import { cleanText, countText, formatNumbers, parseNumbers } from "./text.js";

export function Batch({ project, name, act }) {
  const { total, status, states, replicas, problem } = useTaskStates(project, name);
  const [selected, select] = useState(new Set());
  if (!total) return html`<${Trouble} problem=${problem} />`;
  const failures = status?.failures ?? [];
  const describe = (task) => describeTask(task, states, failures);
  return html`<section class="batch">
    <h2>Tasks</h2>
    <${Legend} states=${states} />
    <${Grid} states=${states} selected=${selected} select=${select} describe=${describe} />
    <${Selection} ...${{ project, name, selected, select, act, replicas, status }} />
    ${failures.length > 0 && html`<${Failures} failures=${failures} select=${select} act=${act} />`}
    ${status?.attempts?.length > 1 && html`<${Attempts} attempts=${status.attempts} />`}
  </section>`;
}

function Legend({ states }) {
  const counts = countStates(states);
  return html`<ul class="legend">
    ${[...STATES]
      .reverse()
      .map(
        (each) =>
          html`<li key=${each}>
            <span class=${`swatch task-${each}`}></span>${each}${" "}<b>${counts[each].toLocaleString("en")}</b>
          </li>`,
      )}
  </ul>`;
}

function describeTask(task, states, failures) {
  const group = failures.find((each) => parseNumbers(each.tasks).includes(task));
  const why =
    group && STATES[states[task]] === "failed"
      ? `: ${group.reason}${group.exitCode ? ` (exit ${group.exitCode})` : ""} ${cleanText(group.message, 200)}`
      : "";
  return `Task ${task} is ${STATES[states[task]]}${why}`;
}

/** What can be done with the tasks that were selected. Its place is there before, so that nothing moves. */
function Selection({ project, name, selected, select, act, replicas, status }) {
  if (selected.size === 0) return html`<p class="selection muted">No task is selected.</p>`;
  const numbers = formatNumbers(selected);
  const [first] = selected;
  const attempts = attemptNumbers(status);
  const replica =
    selected.size === 1 ? [...replicas.values()].findLast((each) => taskOf(each, attempts) === first) : null;
  const logs = new URLSearchParams({
    tab: "logs",
    replica: replica?.name ?? String(first),
    deleted: replica ? "" : "true",
  });
  return html`<p class="selection">
    <span
      >${selected.size === 1 ? `Task ${first}` : `${countText(selected.size, "task")}: ${cleanText(numbers, 60)}`}</span
    >
    <button type="button" onClick=${() => act({ action: "rerun", values: { tasks: numbers } })}>Run again…</button>
    ${selected.size === 1 && html`<a class="button" href=${workloadAddress(project, name, `?${logs}`)}>Logs</a>`}
    <button type="button" class="quiet" onClick=${() => select(new Set())}>Clear</button>
  </p>`;
}

function Failures({ failures, select, act }) {
  return html`<h3>Failures by reason</h3>
    <${Table}
      label="Failures by reason"
      columns=${["Tasks", "Reason", "Last line", "Numbers", ""]}
      rows=${failures.map(
        (each) =>
          html`<tr key=${each.reason + each.exitCode + each.message}>
            <td class="right">${each.count.toLocaleString("en")}</td>
            <td>
              <${Reason}
                reason=${each.reason}
                severity="bad"
              />${each.exitCode ? html` <small>exit ${each.exitCode}</small>` : ""}
            </td>
            <td class="wide">${cleanText(each.message, 300)}</td>
            <td><code>${cleanText(each.tasks, 40)}</code></td>
            <td class="buttons-cell">
              <button type="button" onClick=${() => select(new Set(parseNumbers(each.tasks)))}>Select</button
              >${" "}<button type="button" onClick=${() => act({ action: "rerun", values: { tasks: each.tasks } })}>
                Run again…
              </button>
            </td>
          </tr>`,
      )}
    />`;
}

function Attempts({ attempts }) {
  return html`<h3>Attempts</h3>
    <${Table}
      label="Attempts"
      columns=${["Attempt", "Tasks", "Done", "Failed", "Result", "Begun"]}
      rows=${[...attempts].reverse().map(
        (each) =>
          html`<tr key=${each.number}>
            <td>${each.number}</td>
            <td><code>${cleanText(each.tasks, 60)}</code></td>
            <td class="right">${each.done}</td>
            <td class="right">${each.failed}</td>
            <td>${each.reason && html`<${Reason} reason=${each.reason} />`}</td>
            <td><${Age} time=${each.began} /></td>
          </tr>`,
      )}
    />`;
}
