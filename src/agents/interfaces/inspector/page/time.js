// The tick cursor: one for all views. Keys, playing, and following a run that goes on.
import { current, go } from "#address";
import { site } from "#answers";

/** @typedef {import("./types").RunAbout} RunAbout */

/** The first and last tick of the runs of this page. */
export function span() {
  const runs = site.about.runs;
  return {
    first: Math.min(...runs.map((run) => run.first_tick)),
    last: Math.max(...runs.map((run) => run.last_tick)),
  };
}

/** The ticks at which the cursor can stand: all, or those that an exported file has. */
function kept() {
  const { ticks } = site.about.runs[current().run] ?? {};
  return ticks ?? null;
}

/** The kept tick that is nearest. @param {number} tick */
function nearest(tick) {
  const { first, last } = span();
  const inside = Math.round(Math.min(last, Math.max(first, tick)));
  const ticks = kept();
  if (!ticks?.length) return inside;
  return ticks.reduce((best, each) => (Math.abs(each - inside) < Math.abs(best - inside) ? each : best));
}

/** The tick of the cursor. An address without one means the last tick, also when a run goes on. */
export function tickNow() {
  const { tick } = current();
  return nearest(tick === null ? span().last : tick);
}

export const isLive = () => site.about.runs.some((run) => !run.is_finished && !run.damaged);
export const isFollowing = () => current().tick === null && isLive();

/** @param {number} tick */
export function moveTo(tick) {
  const to = nearest(tick);
  if (to !== tickNow() || current().tick === null) go({ tick: to }, true);
}

/** Some ticks on or back. @param {number} count */
export function step(count) {
  const ticks = kept();
  const at = ticks?.indexOf(tickNow()) ?? -1;
  if (!ticks || at < 0) moveTo(tickNow() + count);
  else moveTo(ticks[Math.min(ticks.length - 1, Math.max(0, at + count))]);
}

/** Go to the last tick, and stay at the last tick while the run goes on. */
export const follow = () => go({ tick: null }, true);

/** @type {number | undefined} */
let timer;
/** @type {Set<() => void>} */
const listeners = new Set();
export const isPlaying = () => timer !== undefined;

/** @param {() => void} listener */
export function onPlay(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

let speed = 5; // ticks a second
export const speedNow = () => speed;

/** Play on at another speed, or with it the next time. @param {number} perSecond */
export function setSpeed(perSecond) {
  speed = perSecond;
  if (isPlaying()) play();
}

export function play() {
  pause();
  if (tickNow() >= span().last) moveTo(span().first);
  timer = setInterval(() => {
    if (tickNow() >= span().last) pause();
    else step(1);
  }, 1000 / speed);
  for (const listener of listeners) listener();
}

export function pause() {
  clearInterval(timer);
  timer = undefined;
  for (const listener of listeners) listener();
}

const LOOK_EVERY = 1000; // milliseconds

/** Whether there is nothing more to learn about a run: it is read to its end, or damaged.
 * @type {WeakSet<RunAbout>} */
const settled = new WeakSet();

/** @param {() => void} changed called when a run of the page has new ticks, or turns out to be damaged */
export function followRuns(changed) {
  const look = async () => {
    const news = await Promise.all(site.about.runs.map(lookAt));
    if (news.includes(true)) changed();
    setTimeout(look, LOOK_EVERY);
  };
  if (!site.provider.embedded) void look();
}

/** @param {RunAbout} run @param {number} index @returns {Promise<boolean>} whether the page shows something new */
async function lookAt(run, index) {
  if (settled.has(run)) return false;
  try {
    const news = await site.provider.get("follow", { run: index, after: run.last_tick });
    const isRead = news.read_tick === undefined || news.read_tick >= news.last_tick;
    const isSame = news.last_tick === run.last_tick && news.head === run.head && news.is_finished === run.is_finished;
    if (isSame && !(isRead && news.is_finished)) {
      return await hasDamage(run, index);
    }
    const about = await site.provider.get("about", {});
    const fresh = about.runs[index];
    if (site.about.runs[index] !== run) return false; // The page looks at another run by now.
    site.about.runs[index] = fresh;
    if (fresh.damaged || (isRead && fresh.is_finished)) settled.add(fresh);
    return true;
  } catch {
    return await hasDamage(run, index);
  }
}

/** @param {RunAbout} run @param {number} index */
async function hasDamage(run, index) {
  try {
    const about = await site.provider.get("about", {});
    if (!about.runs[index]?.damaged || site.about.runs[index] !== run) return false;
    site.about.runs[index] = about.runs[index];
    settled.add(about.runs[index]);
    return true;
  } catch {
    return false; // The server is gone: what the reader asks for next says so.
  }
}
