/** Pure functions over text, times, numbers and sets of task numbers. */

const ESCAPES = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]?/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
/** Characters that reorder or hide what follows them. */
const DECEPTIVE = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const SHOWN_CHARS = 2000;

/** A text of a program or a user, as it may be shown: without colours of terminals and hidden characters. `chars` of it were sent. */
export function cleanText(text, limit = SHOWN_CHARS, chars = String(text ?? "").length) {
  const whole = String(text ?? "");
  // Escape sequences are short, so that a factor bounds the work for a line of a megabyte.
  const shown = whole.length > limit ? whole.slice(0, limit * 2) : whole;
  const clean = shown.replace(ESCAPES, "").replace(CONTROLS, "\ufffd").replace(DECEPTIVE, "\ufffd");
  if (chars <= limit && clean.length <= limit) return clean;
  return `${clean.slice(0, limit)}… (${chars.toLocaleString("en")} characters)`;
}

const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "m"],
  [1, "s"],
];

/** `5m`, `3h` or `12d`: how long ago a time was. */
export function ageText(time, now = Date.now()) {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? UNITS.at(-1);
  return `${Math.floor(seconds / size)}${unit}`;
}

export function clockText(time) {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString("en-GB");
}

export function dayText(time) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return "";
  return at.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
}

/** `1 task`, `7 tasks`. */
export function countText(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function bytesText(bytes) {
  if (bytes == null) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 2 ** (10 * power)).toFixed(power && bytes < 10 * 2 ** (10 * power) ? 1 : 0)} ${units[power]}`;
}

/** The numbers of `0-16,18`, in order. */
export function parseNumbers(text) {
  const numbers = [];
  for (const part of String(text ?? "").split(",")) {
    const [first, last] = part.split("-").map(Number);
    if (part === "" || !Number.isInteger(first)) continue;
    for (let number = first; number <= (last ?? first); number++) numbers.push(number);
  }
  return numbers;
}

/** `0-16,18` of an iterable of numbers. */
export function formatNumbers(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts = [];
  for (let start = 0, end = 0; start < sorted.length; start = end) {
    end = start + 1;
    while (end < sorted.length && sorted[end] === sorted[end - 1] + 1) end++;
    parts.push(end - start > 1 ? `${sorted[start]}-${sorted[end - 1]}` : `${sorted[start]}`);
  }
  return parts.join(",");
}

/** `Service` of `PinterestService`. */
export function kindText(kind) {
  return kind.replace(/^Pinterest/, "").replace(/(?<=[a-z])(?=[A-Z])/g, " ");
}

/** The address of a workload, if it is one that a browser may follow. */
export function safeAddress(address) {
  return /^https?:\/\/[^\s"'<>]+$/.test(address ?? "") ? address : "";
}

/** Calls at most once in an interval, and always once after the last call. */
export function throttled(call, intervalMs) {
  let timer = 0;
  let last = -Infinity;
  const run = () => {
    timer = 0;
    last = performance.now();
    call();
  };
  const throttle = () => {
    if (!timer) timer = setTimeout(run, Math.max(0, last + intervalMs - performance.now()));
  };
  throttle.cancel = () => {
    clearTimeout(timer);
    timer = 0;
  };
  return throttle;
}
