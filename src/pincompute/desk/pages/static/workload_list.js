/** The list of workloads as far as it was scrolled: read in pages, and kept as it is now by the stream of changes. */
import { apiPath, read } from "./api.js";
import { useResource } from "./data.js";
import { useEffect, useRef, useState } from "./dom.js";
import { useFrames } from "./live.js";

const PAGE = 100;

export const ofWorkloads = ({ event, item }) =>
  event === "workloads" || (event === "gone" && item.collection === "workloads");

/** The first page is read again after changes, since what is urgent comes first; items of later ones change in place. */
export function useWorkloadList(filters) {
  const query = { ...filters, sort: "urgency", limit: PAGE };
  const path = apiPath(["workloads"], query);
  const first = useResource(path, { matches: ofWorkloads, keep: true });
  const [later, setLater] = useState({ path, pages: [], problem: null });
  const reading = useRef("");
  const { changed, gone } = useChangedItems(first.data);
  const pages = first.data ? [first.data, ...(later.path === path ? later.pages : [])] : [];
  const cursor = pages.at(-1)?.next;
  const showMore = async () => {
    if (!cursor || reading.current === path + cursor) return;
    reading.current = path + cursor;
    try {
      const page = await read(apiPath(["workloads"], { ...query, cursor }));
      setLater((before) => ({ path, pages: [...(before.path === path ? before.pages : []), page], problem: null }));
    } catch (problem) {
      reading.current = "";
      setLater((before) => ({ ...before, problem }));
    }
  };
  const seen = new Set(gone);
  const items = pages.flatMap((each) => each.items).filter((each) => !seen.has(each.uid) && seen.add(each.uid));
  return {
    items: first.data && items.map((each) => changed.get(each.uid) ?? each),
    total: first.data?.total ?? 0,
    ageS: first.data?.ageS ?? 0,
    hasMore: Boolean(cursor),
    showMore,
    problem: first.problem ?? later.problem,
    loading: first.loading,
  };
}

/** Items by uid that have changed or gone since their page was read. */
function useChangedItems(firstPage) {
  const [state, setState] = useState({ changed: new Map(), gone: new Set() });
  const pending = useRef([]);
  useEffect(() => {
    const read = new Set(firstPage?.items.map((each) => each.uid));
    setState(({ changed, gone }) => ({ changed: new Map([...changed].filter(([uid]) => !read.has(uid))), gone }));
  }, [firstPage]);
  useFrames((frame) => {
    if (!ofWorkloads(frame)) return;
    // A fleet that starts sends thousands of changes: one redraw of the screen takes all of them.
    if (pending.current.push(frame) > 1) return;
    requestAnimationFrame(() => {
      const frames = pending.current;
      pending.current = [];
      setState((before) => {
        const next = { changed: new Map(before.changed), gone: new Set(before.gone) };
        for (const { event, item } of frames) {
          if (event === "gone") next.gone.add(item.uid);
          else next.changed.set(item.uid, item);
        }
        return next;
      });
    });
  });
  return state;
}
