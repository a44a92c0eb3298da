/** The vendored libraries, under the names that the pages use. */
import { Fragment, h, render } from "./preact.mjs";
import htm from "./htm.mjs";

export { Fragment, render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./hooks.mjs";

/** Renders a template. Values are text: no markup of a name, message or log line is ever parsed. */
export const html = htm.bind(h);
