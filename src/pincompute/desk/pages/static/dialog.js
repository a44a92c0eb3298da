/** Modal dialogs, and short notes of what an action did. */
import { html, useEffect, useRef, useState } from "./dom.js";

/** The browser's own dialog: it keeps the focus inside, and Escape closes it. */
export function Dialog({ title, close, children, className = "" }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  const onClick = (event) => event.target === dialog.current && close();
  return html`<dialog ref=${dialog} class=${className} aria-label=${title} onClose=${close} onClick=${onClick}>
    ${children}
  </dialog>`;
}

const SHOWN_MS = 8000;
let add = () => {};

/** Shows a note for some seconds, and reads it to screen readers. */
export function notify(text, severity = "ok") {
  add({ text, severity, key: Math.random() });
}

export function Notes() {
  const [notes, setNotes] = useState([]);
  add = (note) => {
    setNotes((before) => [...before.slice(-3), note]);
    setTimeout(() => setNotes((before) => before.filter((each) => each !== note)), SHOWN_MS);
  };
  return html`<div class="notes" role="status" aria-live="polite">
    ${notes.map((each) => html`<p key=${each.key} class="note-card ${each.severity}">${each.text}</p>`)}
  </div>`;
}
