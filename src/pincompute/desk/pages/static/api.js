/** Requests to the desk's API, with the session of the caller. */

const RETRIES = 2;
const MAX_WAIT_S = 5;
const RETRY_MS = 300;
let csrf = "";
let onSignedOut = () => {};

/** Problems with which the desk refused a request; status 0 if it did not answer. */
export class Refusal extends Error {
  constructor(status, errors) {
    super(errors.map((each) => each.detail).join("; "));
    this.status = status;
    this.errors = errors;
  }
}

export function beginSession(token, signedOut) {
  csrf = token;
  onSignedOut = signedOut;
}

/** A key under which a repeated request is executed once. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (each) => each.toString(16).padStart(2, "0")).join("");
}

/** The path of an API, with names and a query encoded. */
export function apiPath(parts, query = {}) {
  const path = `/v1/${parts.map(encodeURIComponent).join("/")}`;
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value != null));
  return words.size ? `${path}?${words}` : path;
}

export const workloadPath = (project, name, ...rest) => ["projects", project, "workloads", name, ...rest];

/** The answer as JSON, null if it has none; `status` tells an accepted request from one that was carried out. */
export async function send(method, path, { body, signal, key } = {}) {
  const response = await open(method, path, { body, signal, key });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}

export async function read(path, signal) {
  return (await send("GET", path, { signal })).body;
}

/** The lines of a stream, each with one JSON document. */
export async function* readLines(path, signal) {
  const response = await open("GET", path, { signal });
  for await (const line of textLines(response)) {
    if (line) yield JSON.parse(line);
  }
}

/** The lines of an answer that goes on; calls `heard` for whatever arrives. */
export async function* textLines(response, heard = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      // Parts of a long line are joined once, at its end.
      const parts = value.split("\n");
      rest.push(parts[0]);
      for (const part of parts.slice(1)) {
        yield rest.join("");
        rest = [part];
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export async function open(method, path, { body, signal, key } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  if (method !== "GET" && csrf) headers["Pin-Csrf"] = csrf;
  const options = { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) };
  for (let attempt = 0; ; attempt++) {
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      // A change of networks breaks requests that are on their way; a read may be repeated.
      if (method === "GET" && attempt < RETRIES) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (attempt + 1)));
        continue;
      }
      throw new Refusal(0, [{ reason: "Unreachable", detail: "the desk does not answer", next: "check the network" }]);
    }
    if (response.ok) return response;
    const wait = Number(response.headers.get("Retry-After")) || 0;
    if (response.status === 429 && method === "GET" && attempt < RETRIES && wait <= MAX_WAIT_S) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * (wait || 1)));
      continue;
    }
    throw await refusalOf(response);
  }
}

async function refusalOf(response) {
  const document = await response.json().catch(() => null);
  const detail = `the desk answered with status ${response.status}`;
  const refusal = new Refusal(response.status, document?.errors ?? [{ reason: "Internal", detail }]);
  if (response.status === 401) onSignedOut();
  return refusal;
}
