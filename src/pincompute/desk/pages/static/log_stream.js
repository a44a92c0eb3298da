/** The lines of a workload as they come, kept within bounds, and continued after a lost connection. */
import { apiPath, readLines, workloadPath } from "./api.js";
import { useEffect, useRef, useState } from "./dom.js";
import { throttled } from "./text.js";

const MAX_LINES = 5000;
const MAX_LINE_CHARS = 64_000;
const RETRY_MS = 2000;
const DRAW_MS = 100;

/** `lines`, oldest first; `state`: open, lost or ended; and the problem with which the desk refused. */
export function useLogs(project, name, selection) {
  const [shown, setShown] = useState({ lines: [], state: "connecting", problem: null });
  const key = JSON.stringify(selection);
  const buffer = useRef(null);
  useEffect(() => {
    const abort = new AbortController();
    const own = { lines: [], state: "connecting", problem: null, last: 0n };
    buffer.current = own;
    const draw = throttled(() => setShown({ lines: [...own.lines], state: own.state, problem: own.problem }), DRAW_MS);
    follow(project, name, selection, own, draw, abort.signal);
    draw();
    return () => {
      abort.abort();
      draw.cancel();
    };
  }, [project, name, key]);
  return shown;
}

async function follow(project, name, selection, own, draw, signal) {
  let number = 0;
  while (!signal.aborted) {
    try {
      const query = own.last ? { ...selection, since: String(own.last + 1n) } : selection;
      for await (const item of readLines(apiPath(workloadPath(project, name, "logs"), query), signal)) {
        own.state = "open";
        if (item.errors) throw Object.assign(new Error("refused"), { errors: item.errors });
        if (item.is === "line" || item.is === "mark") {
          own.lines.push({
            ...item,
            text: item.text.slice(0, MAX_LINE_CHARS),
            chars: item.text.length,
            number: number++,
          });
          if (own.lines.length > MAX_LINES) own.lines.splice(0, own.lines.length - MAX_LINES);
          own.last = later(own.last, nanoseconds(item.time));
        }
        draw();
      }
      own.state = "ended";
    } catch (problem) {
      if (signal.aborted) return;
      own.state = "lost";
      own.problem = problem.status === 0 ? null : problem;
    }
    draw();
    if (own.problem || own.state === "ended" || !selection.follow) return;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

const later = (a, b) => (a > b ? a : b);

/** Nanoseconds since the epoch of a time such as 2026-01-31T12:00:00.123456789Z. */
function nanoseconds(time) {
  const [, seconds, fraction = ""] = /^([^.]*?)(?:\.(\d+))?Z$/.exec(time ?? "") ?? [];
  const ms = Date.parse(`${seconds}Z`);
  return Number.isNaN(ms) ? 0n : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, "0").slice(0, 9) || 0);
}
