/** The tasks of a batch as coloured cells on a canvas: 10,000 of them are drawn in a few milliseconds. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "./dom.js";
import { STATES } from "./task_states.js";
import { countText } from "./text.js";

const MAX_HEIGHT = 300;
const SIZES = [18, 14, 11, 9, 7, 6, 5, 4];

/** The largest cells with which all tasks fit, and how many are in a row. */
export function layout(total, width) {
  const size =
    SIZES.find((each) => Math.ceil(total / Math.max(1, Math.floor(width / each))) * each <= MAX_HEIGHT) ?? SIZES.at(-1);
  const columns = Math.max(1, Math.floor(width / size));
  return { size, columns, height: Math.ceil(total / columns) * size };
}

export function Grid({ states, selected, select, describe }) {
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [pointed, setPointed] = useState(-1);
  const anchor = useRef(-1);
  const total = states.length;
  const shape = layout(total, width || 320);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(canvas.current.parentElement);
    return () => observer.disconnect();
  }, []);
  const scheme = useScheme();
  useLayoutEffect(
    () => draw(canvas.current, states, shape, selected, pointed),
    [states, shape.size, shape.columns, selected, pointed, width, scheme],
  );
  const taskAt = ({ offsetX, offsetY }) => {
    const task =
      Math.floor(offsetY / shape.size) * shape.columns + Math.min(shape.columns - 1, Math.floor(offsetX / shape.size));
    return task < total ? task : -1;
  };
  const choose = (task, extend) => {
    if (task < 0) return;
    const from = extend && anchor.current >= 0 ? anchor.current : task;
    anchor.current = from;
    const [first, last] = [Math.min(from, task), Math.max(from, task)];
    select(new Set(Array.from({ length: last - first + 1 }, (_, index) => first + index)));
  };
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: shape.columns, ArrowUp: -shape.columns }[event.key];
    if (step) {
      const next = Math.max(0, Math.min(total - 1, (pointed < 0 ? -step : pointed) + step));
      setPointed(Math.max(0, next));
      if (event.shiftKey) choose(next, true);
    } else if (event.key === "Enter" || event.key === " ") choose(pointed, event.shiftKey);
    else return;
    event.preventDefault();
  };
  return html`<div class="grid">
    <canvas
      ref=${canvas}
      tabindex="0"
      role="img"
      aria-label=${gridLabel(states)}
      aria-describedby="pointed"
      style=${{ height: `${shape.height}px` }}
      onPointerMove=${(event) => setPointed(taskAt(event))}
      onPointerLeave=${() => setPointed(-1)}
      onClick=${(event) => choose(taskAt(event), event.shiftKey)}
      onKeyDown=${onKeyDown}
    ></canvas>
    <p id="pointed" class="pointed" aria-live="polite">
      ${pointed >= 0 ? describe(pointed) : "Point at a task, or move with the arrow keys. A click selects, with Shift up to there."}
    </p>
  </div>`;
}

function gridLabel(states) {
  const counts = countStates(states);
  return `${countText(states.length, "task")}: ${STATES.filter((each) => counts[each])
    .map((each) => `${counts[each]} ${each}`)
    .join(", ")}`;
}

export function countStates(states) {
  const counts = Object.fromEntries(STATES.map((each) => [each, 0]));
  for (const state of states) counts[STATES[state]]++;
  return counts;
}

function draw(canvas, states, { size, columns, height }, selected, pointed) {
  const width = canvas.parentElement.clientWidth;
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const gap = size > 6 ? 2 : 1;
  // One colour after the other: a change of the colour costs more than a cell.
  for (const [state, name] of STATES.entries()) {
    context.fillStyle = style.getPropertyValue(`--task-${name}`);
    for (let task = 0; task < states.length; task++) {
      if (states[task] !== state) continue;
      context.fillRect((task % columns) * size, Math.floor(task / columns) * size, size - gap, size - gap);
    }
  }
  context.strokeStyle = style.getPropertyValue("--text");
  for (const task of pointed >= 0 ? [...selected, pointed] : selected) {
    context.strokeRect(
      (task % columns) * size + 0.5,
      Math.floor(task / columns) * size + 0.5,
      size - gap - 1,
      size - gap - 1,
    );
  }
}

/** Draws anew when the colours of the system change. */
function useScheme() {
  const [dark, setDark] = useState(matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setDark(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return dark;
}
