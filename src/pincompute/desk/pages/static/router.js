/** Addresses of pages: every page, filter and tab has one, so that it can be sent, bookmarked and gone back to. */
import { useEffect, useState } from "./dom.js";

const listeners = new Set();

export function useAddress() {
  const [, render] = useState(0);
  useEffect(() => {
    const changed = () => render((count) => count + 1);
    listeners.add(changed);
    return () => listeners.delete(changed);
  }, []);
  return { path: location.pathname, query: Object.fromEntries(new URLSearchParams(location.search)) };
}

export function navigate(address, { replace = false } = {}) {
  const target = new URL(address, location.href);
  const samePage = target.pathname === location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  notify();
  if (!samePage) scrollTo(0, 0);
}

/** Changes some parameters of the present address; empty ones are left out. */
export function changeQuery(changes, { replace = true } = {}) {
  const words = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) words.set(name, value);
    else words.delete(name);
  }
  navigate(`${location.pathname}${words.size ? `?${words}` : ""}`, { replace });
}

export const workloadAddress = (project, name, query = "") =>
  `/ui/projects/${encodeURIComponent(project)}/workloads/${encodeURIComponent(name)}${query}`;
export const projectAddress = (project) => `/ui/projects/${encodeURIComponent(project)}`;

/** The parameters of the path if it has the form of the pattern, such as `/ui/projects/:project`. */
export function matchPath(pattern, path) {
  const wanted = pattern.split("/");
  const found = path.replace(/\/$/, "").split("/");
  if (wanted.length !== found.length) return null;
  const parameters = {};
  for (const [index, word] of wanted.entries()) {
    if (word.startsWith(":")) {
      try {
        parameters[word.slice(1)] = decodeURIComponent(found[index]);
      } catch {
        return null;
      }
    } else if (word !== found[index]) return null;
  }
  return parameters;
}

function notify() {
  for (const each of listeners) each();
}

/** Links to pages change the page without a reload; all others, and those opened in a new tab, are the browser's. */
export function startRouter() {
  addEventListener("popstate", notify);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || event.defaultPrevented || link.target) return;
    const target = new URL(link.href);
    if (target.origin !== location.origin || !/^\/(ui(\/|$)|$)/.test(target.pathname)) return;
    event.preventDefault();
    navigate(target);
  });
}
