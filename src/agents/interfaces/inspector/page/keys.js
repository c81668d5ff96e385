// Keys that work in every view.
import { OF_AGENTS, current, go } from "#address";
import { site } from "#answers";
import { ofView } from "#bits";
import { follow, isLive, isPlaying, moveTo, pause, play, span, step } from "#time";
import { VIEWS } from "#views";

/** Keys, and what they do, for the page's help. */
export const KEYS = [
  ["← →", "one tick back or on; with Shift, ten"],
  ["Home End", "first and last tick"],
  ["space", "play and pause"],
  ["[ ]", "the agent before, the next agent"],
  ["1 … 8", "the views, in their order"],
  ["/", "search"],
  ["b", "branch from here"],
  ["Tab Enter", "choose an agent of the population, and see its tells; with Shift, open the agent"],
  ["?", "this list, and what the words mean"],
];

/** @param {number} by */
function otherAgent(by) {
  const { view, agent, run } = current();
  const agents = site.about.runs[run]?.agents ?? [];
  if (!agents.length) return;
  const at = (agents.indexOf(agent) + by + agents.length) % agents.length;
  go({ view: OF_AGENTS.includes(view) ? view : "agent", of: agents[at], more: {} });
}

/** @param {string} view */
const open = (view) => go({ view, of: ofView(view), more: {} });

/** @param {KeyboardEvent} event @param {() => void} help */
export function onKey(event, help) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey ) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const ticks = event.shiftKey ? 10 : 1;
  /** Keys of runs; a sweep has none. @type {Record<string, () => void>} */
  const ofRuns = {
    ArrowLeft: () => step(-ticks),
    ArrowRight: () => step(ticks),
    Home: () => moveTo(span().first),
    End: () => (isLive() ? follow() : moveTo(span().last)),
    "[": () => otherAgent(-1),
    "]": () => otherAgent(1),
    "/": () => document.getElementById("search")?.focus(),
    b: () => open("branch"),
  };
  if (!["BUTTON", "A", "SUMMARY"].includes(target.tagName)) ofRuns[" "] = () => (isPlaying() ? pause() : play());
  /** @type {Record<string, () => void>} */
  const actions = { ...(site.about.runs.length ? ofRuns : {}), "?": help };
  const views = VIEWS.filter((view) => view.isShown(site.about));
  views.forEach((view, index) => (actions[String(index + 1)] = () => open(view.name)));
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}
