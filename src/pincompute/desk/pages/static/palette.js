/** The command palette: finds a page, a project, a workload, a replica or a node by any part of its name or trouble. */
import { apiPath, read } from "./api.js";
import { useSettled } from "./data.js";
import { Dialog } from "./dialog.js";
import { html, useEffect, useState } from "./dom.js";
import { severityOf, severityOfState, Mark } from "./parts.js";
import { navigate, projectAddress, workloadAddress } from "./router.js";
import { cleanText, kindText } from "./text.js";

const EACH = 8;

export function pagesFor(session) {
  return [
    ["Workloads", "/ui/workloads"],
    ["Projects", "/ui/projects"],
    ...(session.administrator
      ? [
          ["Nodes", "/ui/nodes"],
          ["Audit", "/ui/audit"],
        ]
      : []),
  ];
}

export function Palette({ session, close }) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const search = useSettled(typed.trim(), 60);
  const found = useFound(search, session);
  const choose = (index) => {
    if (!found[index]) return;
    close();
    navigate(found[index].address);
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setChosen((chosen + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(chosen);
    }
  };
  useEffect(() => setChosen(0), [search]);
  useEffect(() => document.getElementById(`option-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  return html`<${Dialog} title="Go to" close=${close} className="palette">
    <input
      type="text"
      role="combobox"
      aria-label="Go to"
      aria-expanded="true"
      aria-controls="options"
      aria-autocomplete="list"
      aria-activedescendant=${found[chosen] ? `option-${chosen}` : undefined}
      placeholder="Go to a workload, project, replica, page…"
      autofocus
      value=${typed}
      onInput=${(event) => setTyped(event.target.value)}
      onKeyDown=${onKeyDown}
    />
    <ul id="options" role="listbox" aria-label="Found">
      ${found.map(
        (each, index) =>
          html`<li
            key=${each.address + each.title}
            id=${`option-${index}`}
            role="option"
            aria-selected=${index === chosen}
            onClick=${() => choose(index)}
            onPointerMove=${() => setChosen(index)}
          >
            ${each.severity ? html`<${Mark} severity=${each.severity} />` : html`<span class="mark"></span>`}<b>${each.title}</b>${" "}<small
              >${each.note}</small
            >
          </li>`,
      )}
    </ul>
    ${found.length === 0 && html`<p class="muted">Nothing is found.</p>`}
    <p class="keys"><kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Enter</kbd> go <kbd>Esc</kbd> close</p>
  <//>`;
}

function useFound(search, session) {
  const [answers, setAnswers] = useState({ projects: [], workloads: [], replicas: [], nodes: [] });
  useEffect(() => {
    const abort = new AbortController();
    const list = (collection) =>
      read(apiPath([collection], { search, limit: EACH, sort: "urgency" }), abort.signal).then(
        (page) => page.items,
        () => [],
      );
    Promise.all([
      read("/v1/projects", abort.signal).catch(() => []),
      list("workloads"),
      search.length > 1 ? list("replicas") : [],
      search.length > 1 && session.administrator ? list("nodes") : [],
    ]).then(
      ([projects, workloads, replicas, nodes]) =>
        !abort.signal.aborted && setAnswers({ projects, workloads, replicas, nodes }),
    );
    return () => abort.abort();
  }, [search]);
  const text = search.toLowerCase();
  const has = (title) => title.toLowerCase().includes(text);
  return [
    ...pagesFor(session)
      .filter(([title]) => has(title))
      .map(([title, address]) => ({ title, address, note: "page" })),
    ...answers.projects
      .filter((each) => has(each.project))
      .slice(0, EACH)
      .map((each) => ({ title: each.project, address: projectAddress(each.project), note: "project" })),
    ...answers.workloads.map((each) => ({
      title: each.name,
      address: workloadAddress(each.project, each.name),
      note: `${kindText(each.kind)} in ${each.project} · ${each.reason} ${cleanText(each.message, 80)}`,
      severity: severityOf(each),
    })),
    ...answers.replicas.map((each) => ({
      title: each.name,
      address: workloadAddress(
        each.project,
        each.workload,
        `?${new URLSearchParams({ tab: "logs", replica: each.name })}`,
      ),
      note: `replica of ${each.workload} · ${each.state}`,
      severity: severityOfState(each.state),
    })),
    ...answers.nodes.map((each) => ({
      title: each.name,
      address: `/ui/nodes/${encodeURIComponent(each.name)}`,
      note: "node",
      severity: each.ready ? "ok" : "bad",
    })),
  ];
}
