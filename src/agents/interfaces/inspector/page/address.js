// The page's state is its address: a link leads back to the same view, agent, tick and filters.
import { useEffect, useReducer } from "#vendor/htm-preact";

/** @typedef {import("./types").Address} Address */

/** Views whose address names an agent. */
export const OF_AGENTS = ["agent", "compare", "branch"];
const WRITE_AFTER = 150; // milliseconds; browsers refuse an address that changes with each frame

/** @type {Set<() => void>} */
const listeners = new Set();
let now = read(location.hash);
/** @type {number | undefined} */
let waiting;

/** @param {string} hash @returns {Address} */
export function read(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/");
  const more = Object.fromEntries(new URLSearchParams(query));
  const { t, run, agent = "", cell = "", effect = "", ...others } = more;
  const tick = t !== undefined && /^\d+$/.test(t) ? Number(t) : null;
  return settled({ view: view || "overview", of: decoded(rest.join("/")), agent, run: run === "1" ? 1 : 0, tick, cell, effect, more: others });
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address with the agent that was looked at last: other views keep it. @param {Address} address */
function settled(address) {
  const { view, of } = address;
  return of && OF_AGENTS.includes(view) ? { ...address, agent: of } : address;
}

/** @param {Address} address */
export function write(address) {
  const { view, of, agent, run, tick, cell, effect, more } = settled(address);
  const query = new URLSearchParams();
  if (agent && agent !== of) query.set("agent", agent);
  if (tick !== null) query.set("t", String(tick));
  if (run) query.set("run", String(run));
  if (cell) query.set("cell", cell);
  if (effect) query.set("effect", effect);
  for (const [name, value] of Object.entries(more)) if (value) query.set(name, value);
  const text = query.toString();
  return `#/${view}${of ? "/" + encodeURIComponent(of) : ""}${text ? "?" + text : ""}`;
}

export const current = () => now;

/** The address of another view. Filters of this view don't follow. @param {Partial<Address>} change */
export function link(change) {
  return write({ ...now, of: "", more: {}, ...change });
}

/** Change the address. Small steps, such as those of the cursor, leave no entry in the browser's history.
 * @param {Partial<Address>} change @param {boolean} isStep */
export function go(change, isStep = false) {
  now = settled({ ...now, ...change });
  clearTimeout(waiting);
  if (isStep) waiting = setTimeout(() => history.replaceState(null, "", write(now)), WRITE_AFTER);
  else history.pushState(null, "", write(now));
  for (const listener of listeners) listener();
}

/** @param {Record<string, string>} change */
export function filter(change) {
  go({ more: { ...now.more, ...change } }, true);
}

export function useAddress() {
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  useEffect(() => {
    const listener = () => redraw(null);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return now;
}

function reread() {
  clearTimeout(waiting);
  now = read(location.hash);
  for (const listener of listeners) listener();
}
addEventListener("hashchange", reread);
addEventListener("popstate", reread);
