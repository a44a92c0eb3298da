/** The lines of all replicas, live, with a filter. */
import { Copy, Problems } from "./parts.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./dom.js";
import { useLogs } from "./log_stream.js";
import { changeQuery, useAddress } from "./router.js";
import { cleanText, clockText } from "./text.js";

const SHOWN_LINES = 1000;
const SHOWN_CHARS = 2000;
const TAIL = 200;
const HUES = 8;

export function Logs({ project, name, replicas }) {
  const { query } = useAddress();
  const [following, setFollowing] = useState(true);
  const selection = {
    replica: query.replica,
    container: query.container,
    previous: query.previous,
    includeDeleted: query.deleted,
    tail: TAIL,
    follow: query.previous ? "" : "true",
  };
  const { lines, state, problem } = useLogs(project, name, selection);
  const filter = (query.filter ?? "").toLowerCase();
  const found = useMemo(
    () => (filter ? lines.filter((each) => each.text.toLowerCase().includes(filter)) : lines),
    [lines, filter],
  );
  return html`<section class="logs">
    <form class="filters" onSubmit=${(event) => event.preventDefault()}>
      <label class="grow"
        ><span class="hidden">Filter lines</span
        ><input
          type="search"
          placeholder="Filter lines"
          value=${query.filter ?? ""}
          onInput=${(event) => changeQuery({ filter: event.target.value })}
      /></label>
      <label
        ><span class="hidden">Replica</span
        ><select value=${query.replica ?? ""} onChange=${(event) => changeQuery({ replica: event.target.value })}>
          <option value="">All replicas</option>
          ${query.replica && !replicas.some((each) => each.name === query.replica) && html`<option value=${query.replica}>${query.replica}</option>`}
          ${replicas.slice(0, 1000).map((each) => html`<option key=${each.name} value=${each.name}>${each.name}</option>`)}
        </select></label
      >
      <label
        ><span class="hidden">Container or file</span
        ><input
          type="text"
          placeholder="Container or file"
          size="16"
          value=${query.container ?? ""}
          onChange=${(event) => changeQuery({ container: event.target.value })}
      /></label>
      <label class="check"
        ><input
          type="checkbox"
          checked=${query.previous === "true"}
          onChange=${(event) => changeQuery({ previous: event.target.checked ? "true" : "" })}
        />${" "}previous run</label
      >
      <label class="check"
        ><input
          type="checkbox"
          checked=${query.deleted === "true"}
          onChange=${(event) => changeQuery({ deleted: event.target.checked ? "true" : "" })}
        />${" "}ended replicas</label
      >
    </form>
    <p class="muted" role="status">${stateText(state, found.length, lines.length, filter)}</p>
    ${problem && html`<${Problems} errors=${problem.errors ?? [{ reason: "Internal", detail: problem.message }]} />`}
    <${Lines} lines=${found.slice(-SHOWN_LINES)} following=${following} setFollowing=${setFollowing} />
    ${!following && html`<p class="more"><button type="button" class="primary" onClick=${() => setFollowing(true)}>To the newest line</button></p>`}
    <${Copy} text=${`pin logs ${name}${query.replica ? ` --replica ${query.replica}` : ""}`} />
  </section>`;
}

function stateText(state, found, all, filter) {
  const count = filter ? `${found} of ${all} lines` : `${all} lines`;
  return {
    connecting: "Asking for lines…",
    open: `${count}, live`,
    ended: `${count}, the end`,
    lost: `${count}; the connection is lost`,
  }[state];
}

/** Follows the newest line until the reader scrolls up. */
function Lines({ lines, following, setFollowing }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  useEffect(() => {
    const scrolled = () => {
      const { scrollTop, clientHeight, scrollHeight } = box.current;
      setFollowing(scrollTop + clientHeight >= scrollHeight - 24);
    };
    box.current.addEventListener("scroll", scrolled, { passive: true });
    return () => box.current?.removeEventListener("scroll", scrolled);
  }, []);
  return html`<div class="lines" ref=${box} tabindex="0" role="log" aria-live="off" aria-label="Log lines">
    ${lines.map((each) => html`<${Line} key=${each.number} line=${each} />`)}
  </div>`;
}

function Line({ line }) {
  const [whole, setWhole] = useState(false);
  const text = cleanText(line.text, whole ? line.text.length : SHOWN_CHARS, line.chars);
  if (line.is === "mark")
    return html`<p class="line mark-line">
      <time>${clockText(line.time)}</time> <span>${line.replica}</span> ${text}
    </p>`;
  return html`<p class="line">
    <time datetime=${line.time} title=${line.time}>${clockText(line.time)}</time>
    <span class=${`from hue${hueOf(line.replica)}`}>${line.replica}</span>
    <span class="text">${text}</span>
    ${
      line.text.length > SHOWN_CHARS &&
      html` <button type="button" class="quiet" onClick=${() => setWhole(!whole)}>${whole ? "Less" : "More"}</button>`
    }
  </p>`;
}

function hueOf(replica) {
  let hash = 0;
  for (const char of replica ?? "") hash = (31 * hash + char.codePointAt(0)) >>> 0;
  return hash % HUES;
}
