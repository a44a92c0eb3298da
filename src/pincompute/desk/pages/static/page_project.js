/** A project: what it runs, its quota and which workloads use it, its members and policies, and what waits. */
import { apiPath } from "./api.js";
import { useResource } from "./data.js";
import { html } from "./dom.js";
import { Age, Crumbs, Heading, Loading, Reason, Tabs, Trouble } from "./parts.js";
import { projectAddress, useAddress, workloadAddress } from "./router.js";
import { cleanText, countText, kindText } from "./text.js";
import { Audit } from "./page_audit.js";
import { Timeline } from "./timeline.js";

const SHOWN_UNFINISHED = 20;
const NEARLY_USED_UP = 0.9;

export function Project({ project }) {
  const { query } = useAddress();
  const matches = ({ event, item }) => event !== "replicas" && item?.project === project;
  const { data, problem } = useResource(apiPath(["projects", project]), { matches, everyMs: 3000 });
  const crumbs = html`<${Crumbs} links=${[["Projects", "/ui/projects"]]} />`;
  if (!data)
    return html`${crumbs}
      <header class="head"><${Heading} title=${project} /></header>
      ${problem ? html`<${Trouble} problem=${problem} absent=${`There is no project ${project}`} />` : html`<${Loading} />`}`;
  const tab = query.tab ?? "overview";
  const tabs = [
    ["overview", "Overview"],
    ["members", "Members and policies"],
    ["history", "History"],
    ["audit", "Audit"],
  ];
  return html`${crumbs}
    <header class="head">
      <div class="title">
        <${Heading} title=${project} />
        <p class="facts">
          <span>${cleanText(data.owner, 100)}</span>
          <span>${cleanText(data.contact, 100)}</span>
          <span>review: ${data.review}</span>
          ${data.costCentre && html`<span>cost centre ${cleanText(data.costCentre, 100)}</span>`}
          ${data.expires && html`<span class="warn-text">${data.expired ? "ended" : "ends"} ${data.expires}</span>`}
        </p>
        ${data.description && html`<p>${cleanText(data.description)}</p>`}
      </div>
    </header>
    <${Tabs}
      label="Views of the project"
      chosen=${tab}
      tabs=${tabs.map(([key, text]) => [key, text, `${projectAddress(project)}${key === "overview" ? "" : `?tab=${key}`}`])}
    />
    <${Trouble} problem=${problem} />
    ${tab === "overview" && html`<${Overview} project=${project} view=${data} />`}
    ${tab === "members" && html`<${Members} view=${data} />`}
    ${tab === "history" && html`<${Timeline} project=${project} name="" events=${[]} />`}
    ${tab === "audit" && html`<${Audit} project=${project} />`}`;
}

function Overview({ project, view }) {
  const counts = Object.entries(view.workloadCounts);
  return html` <section>
      <h2>Workloads</h2>
      <ul class="chips">
        ${counts.map(
          ([kind, count]) =>
            html`<li key=${kind}>
              <a class="chip" href=${`/ui/workloads?${new URLSearchParams({ project, kind })}`}
                >${kindText(kind)} <span class="number">${count.toLocaleString("en")}</span></a
              >
            </li>`,
        )}
      </ul>
      ${counts.length === 0 && html`<p class="muted">None yet.</p>`}
      ${
        view.unfinished.length > 0 &&
        html`<h3>Not as wanted</h3>
          <ul class="plain">
            ${view.unfinished
              .slice(0, SHOWN_UNFINISHED)
              .map(
                (each) =>
                  html`<li key=${each.kind + each.name}>
                    <a href=${workloadAddress(project, each.name)}>${each.name}</a>${" "}<${Reason}
                      reason=${each.reason}
                      severity=${each.failed ? "bad" : undefined}
                    />${" "}<span class="muted">${cleanText(each.message, 300)}</span>
                  </li>`,
              )}
          </ul>`
      }
      ${
        view.unfinished.length > SHOWN_UNFINISHED &&
        html`<p><a href=${`/ui/workloads?${new URLSearchParams({ project })}`}>All ${view.unfinished.length}</a></p>`
      }
    </section>
    <section>
      <h2>Quota</h2>
      ${view.quota.filter((tier) => tier.usages.length).map((tier) => html`<${Tier} key=${tier.tier} project=${project} tier=${tier} />`)}
      ${view.quota.length === 0 && html`<p class="muted">Unlimited.</p>`}
    </section>
    ${
      view.pendingSubmissions.length > 0 &&
      html`<section>
        <h2>Waiting for delivery</h2>
        <${Pending} project=${project} submissions=${view.pendingSubmissions} />
      </section>`
    }
    ${
      view.overrides.length > 0 &&
      html`<section>
        <h2>Emergency overrides</h2>
        <ul class="plain">
          ${view.overrides.map(
            (each) =>
              html`<li key=${each.name}>
                <a href=${workloadAddress(project, each.name)}>${each.name}</a>
                ${` until ${each.until} by ${cleanText(each.by, 100)}: ${cleanText(each.because, 300)} `}
                ${each.overdue && html`<span class="warn-text">overdue</span>`}
              </li>`,
          )}
        </ul>
      </section>`
    }`;
}

function Tier({ project, tier }) {
  return html`<h3>${tier.tier}</h3>
    <div class="meters">
      ${tier.usages.map(
        (each) =>
          html`<div class="meter" key=${each.resource}>
            <p><b>${each.resource}</b> <span>${each.used}${each.limit ? ` of ${each.limit}` : ", unlimited"}</span></p>
            <${UsedShare} share=${each.usedShare} label=${`${each.resource} of ${tier.tier}`} />
            <ol class="consumers">
              ${each.largestConsumers.map(
                (user) =>
                  html`<li key=${user.kind + user.name}>
                    <a href=${workloadAddress(project, user.name)}>${user.name}</a>
                    <span>${user.usage}</span>
                  </li>`,
              )}
            </ol>
          </div>`,
      )}
    </div>`;
}

function UsedShare({ share, label }) {
  if (share == null) return null;
  const severity = share > NEARLY_USED_UP ? "bad" : "ok";
  return html`<progress max="1" value=${Math.min(1, share)} class=${severity} aria-label=${label}></progress>`;
}

function Pending({ project, submissions }) {
  return html`<ol class="plain">
    ${submissions.map(
      (each) =>
        html`<li key=${each.id}>
          <a href=${`${projectAddress(project)}/submissions/${each.id}`}>${each.id}</a
          >${" "}${`${each.verb} ${kindText(each.kind)} ${each.name} by ${cleanText(each.caller, 100)}`}${" "}<${Age}
            time=${each.acceptedAt}
          />
          ${each.attempts > 0 && html`<p class="note">${countText(each.attempts, "attempt")}: ${cleanText(each.lastDeliveryError)}</p>`}
        </li>`,
    )}
  </ol>`;
}

function Members({ view }) {
  const roles = Object.entries(view.members);
  return html`<section>
      <h2>Members</h2>
      <dl>
        ${roles.map(
          ([role, holders]) =>
            html`<dt>${role}</dt>
              <dd>
                ${holders.map((each) => html`<span class="tag">${cleanText(each, 200)}</span> `)}${holders.length === 0 && "none"}
              </dd>`,
        )}
        ${
          view.builders.length > 0 &&
          html`<dt>builders</dt>
            <dd>${view.builders.map((each) => html`<span class="tag">${cleanText(each, 200)}</span> `)}</dd>`
        }
        ${
          view.hosts.length > 0 &&
          html`<dt>hosts</dt>
            <dd>${view.hosts.map((each) => html`<span class="tag">${cleanText(each, 200)}</span> `)}</dd>`
        }
      </dl>
      ${roles.length === 0 && html`<p class="muted">None: only administrators have access.</p>`}
    </section>
    <section>
      <h2>Policies</h2>
      ${view.policies.map(
        (each) =>
          html`<article class="policy" key=${each.name}>
            <h3>${each.name} ${each.platformWide && html`<span class="tag">of the platform</span>`}</h3>
            <p>${cleanText(each.message)}</p>
            <pre><code>${cleanText(each.rule, 4000)}</code></pre>
            ${each.kinds.length > 0 && html`<p class="muted">for ${each.kinds.map(kindText).join(", ")}</p>`}
            ${each.errors.map((error) => html`<p class="warn-text">${cleanText(error)}</p>`)}
          </article>`,
      )}
      ${view.policies.length === 0 && html`<p class="muted">None.</p>`}
    </section>`;
}
