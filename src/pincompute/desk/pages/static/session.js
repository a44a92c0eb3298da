/** The session of the caller: begun by a one-time code or at the OpenID provider, kept in a cookie that no script reads. */
import { Refusal, read, send, beginSession } from "./api.js";

const SIGN_IN = "#signin=";

/** The session, or null if the caller is not signed in. Takes a one-time code from the address. */
export async function loadSession(signedOut) {
  let problem = null;
  if (location.hash.startsWith(SIGN_IN)) {
    const code = decodeURIComponent(location.hash.slice(SIGN_IN.length));
    // The code must not stay in the history of the browser.
    history.replaceState(null, "", location.pathname + location.search);
    problem = await send("POST", "/session", { body: { code } }).then(
      () => null,
      (refused) => refused,
    );
  }
  const session = await readSession();
  if (session) beginSession(session.csrf, signedOut);
  return { session, problem };
}

async function readSession() {
  try {
    return await read("/session");
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return null;
    throw error;
  }
}

export function signInAddress() {
  const returnTo = location.pathname + location.search;
  return `/session/openid?${new URLSearchParams({ returnTo })}`;
}

export async function signOut() {
  await send("DELETE", "/session");
  location.assign("/");
}
