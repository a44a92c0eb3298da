/** Reads of the API as the state of a component. */
import { read } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./dom.js";
import { useChanges } from "./live.js";

const MAX_CACHED = 60;
const RETRY_MS = 3000;
/** The newest answers by path, so that the back button shows a page at once. */
const cache = new Map();
const NEVER = () => false;

function store(path, data) {
  cache.delete(path);
  cache.set(path, data);
  if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value);
}

/**
 * `data` of a path, undefined until it is there; `problem`, a Refusal; and `reload`. Frames that match read it again.
 * Data stays while a newer answer is awaited, and when a later read fails: a page then shows both.
 */
export function useResource(path, { matches = NEVER, everyMs = 1500, keep = false } = {}) {
  const [answer, setAnswer] = useState({ path, data: cache.get(path), problem: null });
  const reading = useRef(null);
  const load = useCallback(async () => {
    reading.current?.abort();
    if (!path) return;
    const abort = new AbortController();
    reading.current = abort;
    try {
      const data = await read(path, abort.signal);
      store(path, data);
      setAnswer({ path, data, problem: null });
    } catch (problem) {
      if (problem.name === "AbortError") return;
      // What the caller may no longer see, or what is gone, is not shown from before.
      const isHidden = [401, 403, 404].includes(problem.status);
      if (isHidden) cache.delete(path);
      setAnswer((before) => ({ path, data: !isHidden && before.path === path ? before.data : undefined, problem }));
    }
  }, [path]);
  useEffect(() => {
    load();
    return () => reading.current?.abort();
  }, [load]);
  useChanges(matches, load, everyMs);
  const isUnanswered = answer.path === path && answer.problem?.status === 0;
  useEffect(() => {
    const timer = isUnanswered ? setInterval(load, RETRY_MS) : 0;
    return () => clearInterval(timer);
  }, [isUnanswered, load]);
  const current = answer.path === path;
  const data = current ? answer.data : (cache.get(path) ?? (keep ? answer.data : undefined));
  return {
    data,
    problem: current ? answer.problem : null,
    loading: !current || (!data && !answer.problem),
    reload: load,
  };
}

/** The time, each few seconds, for ages. */
export function useNow(everyMs = 10_000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A value once it has not changed for a while. */
export function useSettled(value, delayMs) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), delayMs);
    return () => clearTimeout(timer);
  }, [value, delayMs]);
  return settled;
}
