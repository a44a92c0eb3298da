/** The frame of all pages: navigation, the page that the address names, notes, and the state of the connection. */
import { Notes } from "./dialog.js";
import { html, render, useEffect, useState } from "./dom.js";
import { startLive, stopLive, useConnection } from "./live.js";
import { AuditPage, Submission } from "./page_audit.js";
import { Node, Nodes } from "./page_nodes.js";
import { Project } from "./page_project.js";
import { Projects } from "./page_projects.js";
import { SignIn } from "./page_signin.js";
import { Workload } from "./page_workload.js";
import { Workloads } from "./page_workloads.js";
import { Palette, pagesFor } from "./palette.js";
import { Heading, Problems } from "./parts.js";
import { matchPath, startRouter, useAddress } from "./router.js";
import { loadSession, signOut } from "./session.js";
import { clockText } from "./text.js";

const ROUTES = [
  ["", Workloads],
  ["/ui", Workloads],
  ["/ui/workloads", Workloads],
  ["/ui/projects", Projects],
  ["/ui/projects/:project", Project],
  ["/ui/projects/:project/workloads/:name", Workload],
  ["/ui/projects/:project/submissions/:id", Submission],
  ["/ui/nodes", Nodes],
  ["/ui/nodes/:node", Node],
  ["/ui/audit", AuditPage],
];
const NOT_SIGNED_IN = { session: null, problem: null };

function App() {
  const [state, setState] = useState(null);
  useEffect(() => {
    loadSession(() => setState(NOT_SIGNED_IN)).then(setState, (problem) => setState({ session: null, problem }));
  }, []);
  const signedIn = Boolean(state?.session);
  useEffect(() => {
    if (signedIn) startLive();
    return stopLive;
  }, [signedIn]);
  if (!state) return html`<p class="boot">Loading PinCompute…</p>`;
  if (!state.session) return html`<${SignIn} problem=${state.problem} />`;
  return html`<${Frame} session=${state.session} />`;
}

function Frame({ session }) {
  const { path } = useAddress();
  const [searching, setSearching] = useState(false);
  useEffect(() => {
    const onKey = (event) => {
      const typing = event.target.closest?.("input, select, textarea, dialog");
      const slash = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey;
      if (!slash && !(event.key === "k" && (event.ctrlKey || event.metaKey))) return;
      event.preventDefault();
      setSearching(true);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return html` <a class="skip" href="#main">Skip to the content</a>
    <${Header} session=${session} path=${path} search=${() => setSearching(true)} />
    <main id="main"><${Page} path=${path} /></main>
    ${searching && html`<${Palette} session=${session} close=${() => setSearching(false)} />`}
    <${Connection} />
    <${Notes} />`;
}

function Header({ session, path, search }) {
  const isWorkload = ["/", "/ui", "/ui/"].includes(path) || path.includes("/workloads");
  const isAt = (address) => (isWorkload ? address === "/ui/workloads" : path.startsWith(address));
  const current = (address) => (isAt(address) ? "page" : undefined);
  return html`<header class="top">
    <a class="brand" href="/ui/workloads"
      ><svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M10 25V8h7.2a5.6 5.6 0 0 1 0 11.2H10" /></svg
      ><span>PinCompute</span></a
    >
    <nav aria-label="Pages">
      ${pagesFor(session).map(
        ([title, address]) => html`<a key=${address} href=${address} aria-current=${current(address)}>${title}</a>`,
      )}
    </nav>
    <button type="button" class="search" onClick=${search} aria-keyshortcuts="/ Control+K">
      <span>Search</span> <kbd>/</kbd>
    </button>
    <details class="user">
      <summary>${session.user}</summary>
      <div>
        <p class="muted">
          ${session.administrator ? "administrator" : "member"}${session.expires && `, signed in until ${clockText(session.expires)}`}
        </p>
        ${session.csrf && html`<button type="button" onClick=${signOut}>Sign out</button>`}
      </div>
    </details>
  </header>`;
}

function Page({ path }) {
  for (const [pattern, View] of ROUTES) {
    const parameters = matchPath(pattern, path);
    // The key makes another workload another page, with a state of its own.
    if (parameters) return html`<${View} key=${path} ...${parameters} />`;
  }
  return html`<div class="empty">
    <${Heading} title="There is no such page" />
    <p><a href="/ui/workloads">Workloads</a></p>
  </div>`;
}

/** Says that the stream is lost, and since when. It lies over the page, which does not move. */
function Connection() {
  const { state, since } = useConnection();
  const lost = state === "lost";
  return html`<div class=${`connection ${lost ? "lost" : ""}`} role="status">
    ${lost && `The connection is lost. This is as of ${clockText(since)}; trying again…`}
  </div>`;
}

/** An error of the page itself is shown in place of a blank page. */
addEventListener("error", ({ error }) => showFailure(error));
addEventListener("unhandledrejection", ({ reason }) => reason?.name !== "AbortError" && showFailure(reason));

function showFailure(error) {
  const app = document.getElementById("app");
  if (app.childElementCount > 0 && app.querySelector("main")?.childElementCount > 0) return;
  render(
    html`<main id="main">
      <${Problems}
        errors=${[{ reason: "Internal", detail: String(error?.message ?? error), next: "reload the page" }]}
      />
    </main>`,
    app,
  );
}

startRouter();
const app = document.getElementById("app");
app.replaceChildren();
render(html`<${App} />`, app);
