/** The deletion of a workload: it lists what ends with it, and asks for its name. */
import { apiPath, newKey, send, workloadPath } from "./api.js";
import { Dialog, notify } from "./dialog.js";
import { html, useState } from "./dom.js";
import { Problems } from "./parts.js";
import { navigate, projectAddress } from "./router.js";
import { countText } from "./text.js";

export function DeleteDialog({ project, name, uid, natives, replicas, close }) {
  const [typed, setTyped] = useState("");
  const [working, setWorking] = useState(false);
  const [refused, setRefused] = useState(null);
  const [key] = useState(newKey);
  const remove = async (event) => {
    event.preventDefault();
    if (typed !== name || working) return;
    setWorking(true);
    try {
      await send("DELETE", apiPath(workloadPath(project, name), { uid }), { key });
      notify(`${name} is deleted`);
      navigate(projectAddress(project));
    } catch (problem) {
      setRefused(problem);
      setWorking(false);
    }
  };
  return html`<${Dialog} title=${`Delete ${name}`} close=${close} className="action">
    <form onSubmit=${remove}>
      <h2>Delete ${name}</h2>
      <div class="plan">
        <h3>Plan</h3>
        <ul>
          <li>${countText(replicas, "replica")} of ${name} end</li>
          ${natives.map((each) => html`<li key=${each.name}>${each.name} is deleted</li>`)}
        </ul>
      </div>
      <label
        >Type its name to delete it<input
          type="text"
          autocomplete="off"
          autofocus
          value=${typed}
          onInput=${(event) => setTyped(event.target.value)}
      /></label>
      ${refused && html`<${Problems} errors=${refused.errors ?? [{ reason: "Internal", detail: refused.message }]} title="It was refused." />`}
      <p class="buttons">
        <button type="button" onClick=${close}>Leave it</button
        ><button class="danger" disabled=${typed !== name || working}>Delete</button>
      </p>
    </form>
  <//>`;
}
