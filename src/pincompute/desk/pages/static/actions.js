/** Changes of a workload. Each shows its plan first, as the desk makes it, and then says what was done. */
import { apiPath, newKey, send, workloadPath } from "./api.js";
import { Dialog, notify } from "./dialog.js";
import { html, useEffect, useState } from "./dom.js";
import { useSettled } from "./data.js";
import { Problems } from "./parts.js";
import { cleanText } from "./text.js";

const SERVING = ["PinterestService", "PinterestStatefulSet", "PinterestDaemon"];
const FINITE = ["PinterestJobSet", "PinterestTrainingJob"];
const because = { name: "because", label: "Reason", type: "text", value: "" };

/** Actions by name: their title, the kinds that have them, and the fields of the change. */
export const ACTIONS = {
  scale: {
    title: "Scale",
    kinds: [...SERVING.slice(0, 2), ...FINITE],
    fields: [{ name: "replicas", label: "Replicas", type: "number", value: 1 }],
  },
  restart: { title: "Restart", kinds: SERVING, fields: [] },
  pause: { title: "Pause", fields: [because] },
  resume: { title: "Resume", fields: [] },
  rollback: {
    title: "Roll back",
    kinds: [...SERVING, "PinterestCronJob"],
    fields: [{ name: "to", label: "Revision (0: the last different one)", type: "number", value: 0 }],
  },
  rerun: {
    title: "Run again",
    kinds: [...FINITE, "PinterestCronJob"],
    fields: [
      { name: "tasks", label: "Tasks", type: "text", value: "failed" },
      { name: "memory", label: "Memory, if other than before", type: "text", value: "" },
    ],
  },
  cancel: { title: "Cancel", kinds: FINITE, fields: [because], danger: true },
};

/** The actions that a workload has in its state: a paused one can only be resumed. */
export function actionsOf({ kind, spec }) {
  const paused = Boolean(spec?.rollout?.paused || spec?.suspended);
  const hidden = paused ? "pause" : "resume";
  return Object.keys(ACTIONS).filter(
    (name) => name !== hidden && (!ACTIONS[name].kinds || ACTIONS[name].kinds.includes(kind)),
  );
}

/** The action that a printed command is about, with the values in it; null for any other command. */
export function actionOfCommand(command, workload) {
  const found = /^pin (scale|restart|resume|rollback|rerun) (\S+)((?: \S+)*)$/.exec(command ?? "");
  if (!found || found[2] !== workload) return null;
  const values = {};
  for (const [, name, value] of found[3].matchAll(/ --(to|memory|reason|tasks) (\S+)/g)) values[name] = value;
  const number = / (\d+)$/.exec(found[3])?.[1];
  if (found[1] === "scale") values.replicas = number;
  return { action: found[1], values };
}

function changeOf(action, values) {
  const change = { change: action };
  for (const [name, value] of Object.entries(values)) {
    if (name === "replicas" || name === "to") change[name] = Number.parseInt(value, 10) || 0;
    else if (value !== "") change[name] = value;
  }
  return change;
}

export function ActionDialog({ project, name, action, values: given = {}, close, done }) {
  const { title, fields, danger } = ACTIONS[action];
  const initial = Object.fromEntries(fields.map((each) => [each.name, each.value]));
  const [values, setValues] = useState({ ...initial, ...given });
  const [working, setWorking] = useState(false);
  const [refused, setRefused] = useState(null);
  const [key] = useState(newKey);
  const text = JSON.stringify(changeOf(action, values));
  const settled = useSettled(text, 250);
  const plan = usePlan(project, name, settled);
  const isCurrent = settled === text && plan.of === text;
  const apply = async (event) => {
    event.preventDefault();
    if (!isCurrent || working) return;
    setWorking(true);
    try {
      const path = apiPath(workloadPath(project, name, "changes"));
      const { status, body } = await send("POST", path, { body: JSON.parse(text), key });
      notify(resultText(name, status, body));
      done();
      close();
    } catch (problem) {
      setRefused(problem);
      setWorking(false);
    }
  };
  return html`<${Dialog} title=${`${title} ${name}`} close=${close} className="action">
    <form onSubmit=${apply}>
      <h2>${title} ${name}</h2>
      ${fields.map(
        (each, index) =>
          html`<label key=${each.name}
            >${each.label}
            <input
              type=${each.type}
              min="0"
              autofocus=${index === 0}
              value=${values[each.name]}
              onInput=${(event) => setValues({ ...values, [each.name]: event.target.value })}
          /></label>`,
      )}
      <${Plan} plan=${plan} isCurrent=${isCurrent} />
      ${refused && html`<${Problems} errors=${refused.errors ?? [{ reason: "Internal", detail: refused.message }]} title="It was refused." />`}
      <p class="buttons">
        <button type="button" onClick=${close}>Leave it</button>
        <button class=${danger ? "danger" : "primary"} disabled=${!isCurrent || !plan.allowed || working}>
          ${working ? "Working…" : title}
        </button>
      </p>
    </form>
  <//>`;
}

/** The plan of a change, given as JSON; the last one stays until the next is there. */
function usePlan(project, name, change) {
  const [plan, setPlan] = useState({ of: "", errors: [], effects: [], fields: [], quotaAfter: [], allowed: false });
  useEffect(() => {
    const abort = new AbortController();
    const path = apiPath(workloadPath(project, name, "plans"));
    send("POST", path, { body: JSON.parse(change), signal: abort.signal }).then(
      ({ body }) => setPlan({ ...body, of: change, allowed: body.errors.length === 0 }),
      (problem) =>
        problem.name !== "AbortError" &&
        setPlan({
          of: change,
          errors: problem.errors ?? [{ reason: "Internal", detail: problem.message }],
          effects: [],
          fields: [],
          quotaAfter: [],
          allowed: false,
        }),
    );
    return () => abort.abort();
  }, [project, name, change]);
  return plan;
}

function Plan({ plan, isCurrent }) {
  return html`<div class="plan" aria-live="polite" aria-busy=${!isCurrent}>
    <h3>Plan</h3>
    ${!plan.of && html`<p class="muted">Asking the desk…</p>`}
    ${plan.of && !plan.effects.length && !plan.errors.length && html`<p class="muted">Nothing changes.</p>`}
    <ul>
      ${plan.effects.map((each) => html`<li>${cleanText(each)}</li>`)}
    </ul>
    ${
      plan.fields.length > 0 &&
      html`<ul class="fields">
        ${plan.fields.map((each) => html`<li><code>${cleanText(each, 400)}</code></li>`)}
      </ul>`
    }
    ${plan.quotaAfter.length > 0 && html`<p class="muted">Quota: ${plan.quotaAfter.map((each) => cleanText(each)).join("; ")}</p>`}
    ${plan.errors.length > 0 && html`<${Problems} errors=${plan.errors} title="It would be refused." />`}
  </div>`;
}

function resultText(name, status, body) {
  if (status === 202) return `${name}: accepted as ${body.id}; it is on its way`;
  const text = body.messages.map((each) => cleanText(each, 300)).join("; ");
  return body.written ? `${body.summary.name}@${body.summary.revision}: ${text}` : `${name} is unchanged: ${text}`;
}
