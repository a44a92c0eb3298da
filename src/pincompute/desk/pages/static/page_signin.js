/** The page of a caller who is not signed in. */
import { useResource } from "./data.js";
import { html } from "./dom.js";
import { Copy, Heading, Problems } from "./parts.js";
import { signInAddress } from "./session.js";

export function SignIn({ problem }) {
  const { data } = useResource("/v1/sign-in");
  return html`<main class="sign-in" id="main">
    <${Heading} title="Sign in" />
    ${problem && html`<${Problems} errors=${problem.errors ?? [{ reason: "Internal", detail: problem.message }]} />`}
    ${data?.browser && html`<p><a class="button primary" href=${signInAddress()}>Sign in with ${new URL(data.issuer).host}</a></p>`}
    <p>On the machine of the platform, a command opens these pages for its administrator:</p>
    <${Copy} text="pin open" />
  </main>`;
}
