/** The projects of the caller. */
import { useResource } from "./data.js";
import { html, useState } from "./dom.js";
import { Heading, Loading, SearchField, Trouble } from "./parts.js";
import { moveFocus } from "./page_workloads.js";
import { projectAddress } from "./router.js";
import { cleanText } from "./text.js";

const SHOWN = 200;

export function Projects() {
  const { data, problem } = useResource("/v1/projects");
  const [search, setSearch] = useState("");
  const text = search.toLowerCase();
  const found = (data ?? []).filter((each) => `${each.project} ${each.owner}`.toLowerCase().includes(text));
  return html` <header class="head"><${Heading} title="Projects" /></header>
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${SearchField} placeholder="Search projects and owners" value=${search} onChange=${setSearch} />
    </form>
    <${Trouble} problem=${problem} />
    ${!data && !problem && html`<${Loading} />`}
    ${
      data &&
      found.length === 0 &&
      html`<div class="empty">
        <h2>No projects here</h2>
        <p>${data.length ? "Nothing matches." : "You have no role in a project yet: ask its owner."}</p>
      </div>`
    }
    <ol class="rows" onKeyDown=${moveFocus}>
      ${found.slice(0, SHOWN).map(
        (each) =>
          html`<li key=${each.project}>
            <a class="row project-row" href=${projectAddress(each.project)}>
              <span class="name"><b>${each.project}</b><small>${cleanText(each.owner, 100)}</small></span>
              <span class="message">${cleanText(each.contact, 200)}</span>
              <span class="muted">${each.role ?? "administrator"}</span>
            </a>
          </li>`,
      )}
    </ol>
    ${found.length > SHOWN && html`<p class="muted">${found.length - SHOWN} more: search for them.</p>`}`;
}
