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

/** @param {number} perSecond */
export function play(perSecond) {
  pause();
  if (tickNow() >= span().last) moveTo(span().first);
  timer = setInterval(() => {
    if (tickNow() >= span().last) pause();
    else step(1);
  }, 1000 / perSecond);
  for (const listener of listeners) listener();
}

export function pause() {
  clearInterval(timer);
  timer = undefined;
  for (const listener of listeners) listener();
}

/** @param {() => void} changed called when a run of the page has new ticks */
export function followRuns(changed) {
  const every = 1000;
  const look = async () => {
    let isChanged = false;
    for (const [index, run] of site.about.runs.entries()) {
      if (run.is_finished || run.damaged) continue;
      try {
        const news = await site.provider.get("follow", { run: index, after: run.last_tick });
        if (news.last_tick === null || (news.last_tick === run.last_tick && news.is_finished === run.is_finished)) continue;
        const about = await site.provider.get("about", {});
        site.about.runs[index] = about.runs[index];
        isChanged = true;
      } catch {
        // The server is busy or gone. What the reader asks for next says so.
      }
    }
    if (isChanged) changed();
    if (isLive()) setTimeout(look, every);
  };
  if (isLive() && !site.provider.embedded) setTimeout(look, every);
}
