/** One stream of changes for all parts of a page. It says when it is lost, and continues where it was. */
import { Refusal, apiPath, open, textLines } from "./api.js";
import { useEffect, useRef, useState } from "./dom.js";
import { throttled } from "./text.js";

/** Three heartbeats of the server. */
const SILENCE_MS = 45_000;
const HIDDEN_MS = 30_000;
const MAX_BACKOFF_MS = 15_000;

const listeners = new Set();
const watchers = new Set();
let state = "connecting";
let since = Date.now();
let lastId = "";
let running = null;
let hiddenTimer = 0;

/** `open`, `connecting`, `lost` or `paused`, and since when. */
export function useConnection() {
  const [shown, show] = useState({ state, since });
  useEffect(() => {
    watchers.add(show);
    return () => watchers.delete(show);
  }, []);
  return shown;
}

/** Calls back for each frame that matches, and for `reload`, after which everything must be read again. */
export function useFrames(receive) {
  const newest = useRef(receive);
  newest.current = receive;
  useEffect(() => {
    const listener = (frame) => newest.current(frame);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
}

/** Calls back at most once in an interval after frames that match. */
export function useChanges(matches, changed, intervalMs = 1500) {
  const newest = useRef(changed);
  newest.current = changed;
  const throttle = useRef(null);
  throttle.current ??= throttled(() => newest.current(), intervalMs);
  useEffect(() => () => throttle.current.cancel(), []);
  useFrames((frame) => {
    if (frame.event === "reload" || matches(frame)) throttle.current();
  });
}

function become(next) {
  if (state === next) return;
  state = next;
  since = Date.now();
  for (const each of watchers) each({ state, since });
}

/** Hidden tabs hold no stream: a browser opens few connections to a server, and the desk allows few streams to a caller. */
export function startLive() {
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = setTimeout(pause, HIDDEN_MS);
    else resume();
  });
  addEventListener("offline", () => running?.drop());
  addEventListener("online", () => running?.wake());
  resume();
}

export function stopLive() {
  running?.abort.abort();
  running = null;
}

function pause() {
  stopLive();
  become("paused");
}

function resume() {
  if (running) return;
  const abort = new AbortController();
  running = { abort, wake: () => {}, drop: () => {} };
  run(running, abort.signal);
}

async function run(self, signal) {
  let backoffMs = 500;
  while (!signal.aborted) {
    if (state !== "lost") become("connecting");
    try {
      const opened = () => {
        backoffMs = 500;
        become("open");
      };
      await readStream(self, signal, opened);
    } catch (error) {
      // Another sign-in starts another stream.
      if (signal.aborted || (error instanceof Refusal && error.status === 401)) return;
    }
    if (signal.aborted) return;
    become("lost");
    await new Promise((resolve) => {
      self.wake = resolve;
      setTimeout(resolve, backoffMs * (0.75 + Math.random() / 2));
    });
    backoffMs = Math.min(MAX_BACKOFF_MS, 2 * backoffMs);
  }
}

async function readStream(self, signal, opened) {
  const abort = new AbortController();
  const stop = () => abort.abort();
  self.drop = stop;
  signal.addEventListener("abort", stop);
  let silence = setTimeout(stop, SILENCE_MS);
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(stop, SILENCE_MS);
  };
  try {
    const isFirst = !lastId;
    const response = await open("GET", apiPath(["changes"], { after: lastId }), { signal: abort.signal });
    opened();
    // Lists that were read before the stream began may lack what came between.
    if (isFirst) emit({ event: "reload" });
    let frame = {};
    for await (const line of textLines(response, heard)) {
      if (line === "") {
        if (frame.event) receive(frame);
        frame = {};
      } else if (!line.startsWith(":")) {
        const colon = line.indexOf(": ");
        frame[line.slice(0, colon)] = line.slice(colon + 2);
      }
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", stop);
    abort.abort();
  }
}

function receive({ id, event, data }) {
  if (id) lastId = id;
  emit({ event, item: data ? JSON.parse(data) : null });
}

function emit(frame) {
  for (const each of listeners) each(frame);
}

/** True for frames about a workload, its replicas, and the end of either. */
export function isAbout(project, name) {
  return ({ event, item }) => {
    if (!item || item.project !== project) return false;
    if (event === "replicas") return item.workload === name;
    if (event === "gone") return item.name === name || item.name.startsWith(`${name}-`);
    return event === "workloads" && item.name === name;
  };
}
