/** The state of every task of a batch: from its status what has ended, and from its replicas what goes on. */
import { apiPath, read } from "./api.js";
import { useResource } from "./data.js";
import { useEffect, useMemo, useRef, useState } from "./dom.js";
import { isAbout, useFrames } from "./live.js";
import { parseNumbers, throttled } from "./text.js";
import { workloadPath } from "./api.js";

/** In the order of the legend. A state is its index here, so that 10,000 tasks are one array of bytes. */
export const STATES = ["waiting", "starting", "running", "retrying", "failed", "done"];
const [WAITING, STARTING, RUNNING, RETRYING, FAILED, DONE] = STATES.keys();
const FIELDS = "name,uid,project,workload,state,ready,attempt,index,node";
const MAX_REPLICAS = 10_000;

export function useTaskStates(project, name) {
  const resource = useResource(apiPath(workloadPath(project, name)), {
    matches: ofWorkload(project, name),
    everyMs: 1500,
  });
  const replicas = useReplicas(project, name);
  const { spec, status } = resource.data ?? {};
  const total = status?.tasks || spec?.items?.length || spec?.tasks || 0;
  const states = useMemo(() => taskStates(total, status, replicas), [total, status, replicas]);
  return { total, status, states, replicas, problem: resource.problem };
}

const ofWorkload = (project, name) => {
  const matches = isAbout(project, name);
  return (frame) => frame.event === "workloads" && matches(frame);
};

/** Replicas by uid: read once, then kept by the stream. */
function useReplicas(project, name) {
  const [shown, setShown] = useState(new Map());
  const kept = useRef(new Map());
  const draw = useRef(null);
  draw.current ??= throttled(() => setShown(new Map(kept.current)), 250);
  const load = async (signal) => {
    const found = new Map();
    let cursor = "";
    do {
      const page = await read(
        apiPath(["replicas"], { project, workload: name, limit: 500, fields: FIELDS, cursor }),
        signal,
      );
      for (const each of page.items) found.set(each.uid, each);
      cursor = page.next;
    } while (cursor && found.size < MAX_REPLICAS);
    kept.current = found;
    draw.current();
  };
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).catch(() => {});
    return () => abort.abort();
  }, [project, name]);
  const matches = isAbout(project, name);
  useFrames((frame) => {
    if (frame.event === "reload") load().catch(() => {});
    else if (matches(frame) && frame.event === "replicas") kept.current.set(frame.item.uid, frame.item);
    else if (matches(frame) && frame.event === "gone") kept.current.delete(frame.item.uid);
    else return;
    draw.current();
  });
  return shown;
}

/** The number of a replica's task; -1 if it is none. */
export function taskOf(replica, attempts) {
  if (replica.index == null) return -1;
  if (replica.attempt === 0) return replica.index;
  const numbers = attempts.get(replica.attempt);
  return numbers ? (numbers[replica.index] ?? -1) : replica.attempt === 1 ? replica.index : -1;
}

export function attemptNumbers(status) {
  return new Map((status?.attempts ?? []).map((each) => [each.number, parseNumbers(each.tasks)]));
}

function taskStates(total, status, replicas) {
  const states = new Uint8Array(total).fill(WAITING);
  const attempts = attemptNumbers(status);
  for (const replica of replicas.values()) {
    const task = taskOf(replica, attempts);
    if (task >= 0 && task < total) states[task] = Math.max(states[task], stateOf(replica));
  }
  for (const group of status?.failures ?? [])
    for (const task of parseNumbers(group.tasks)) if (states[task] === WAITING) states[task] = FAILED;
  for (const task of parseNumbers(status?.completed)) if (task < total) states[task] = DONE;
  return states;
}

function stateOf({ state, ready }) {
  if (ready || state === "Running" || state === "Ready") return RUNNING;
  if (state === "Succeeded" || state === "Completed") return DONE;
  if (["Pending", "Starting"].includes(state)) return STARTING;
  return state === "Terminating" ? RETRYING : FAILED;
}
