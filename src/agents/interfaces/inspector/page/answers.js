// Answers, kept while they are likely to be asked again. While the cursor moves, a view keeps its last answer.
import { useEffect, useReducer, useRef } from "#vendor/htm-preact";
import { LISTS, parted, shown } from "#lists";

/** @typedef {import("./types").Provider} Provider */
/** @typedef {import("./types").About} About */

const KEPT = 400;
const KEPT_ROWS = 200000; // of all lists that are kept
/** These change when an unfinished run goes on. */
const GROWING = new Set(["series", "costs", "heat", "numbers", "memory", "search", "compare", "sweep"]);

/** @type {{provider: Provider, about: About}} */
export const site = /** @type {any} */ ({});
/** @type {Map<string, Promise<any>>} */
const kept = new Map();
/** How many rows the lists have that are kept, by the key of the answer. @type {Map<string, number>} */
const sizes = new Map();

/** What an answer is kept by. A bank gets memories while its tick stands still: the head of its journal tells.
 * @param {string} name @param {Record<string, any>} params */
export function keyOf(name, params) {
  const { kind, runs } = site.about ?? { kind: "", runs: [] };
  const isLast = kind === "bank" && params.tick >= runs[params.run ?? 0]?.last_tick;
  const upto = GROWING.has(name) || isLast ? runs.map((run) => [run.last_tick, run.head]).join() : "";
  return JSON.stringify([name, params, upto]);
}

/** The answer to a question. A list is asked for whole, once, and then filtered, sorted and cut here.
 * @param {string} name @param {Record<string, any>} params @returns {Promise<any>} */
export async function ask(name, params) {
  if (!(name in LISTS)) return answer(name, params);
  const { asked, how } = parted(params);
  return shown(name, await answer(name, asked), how);
}

/** @param {string} name @param {Record<string, any>} params @returns {Promise<any>} */
function answer(name, params) {
  const key = keyOf(name, params);
  const found = kept.get(key);
  if (found) {
    kept.delete(key);
    kept.set(key, found);
    return found;
  }
  const asked = site.provider.get(name, params);
  kept.set(key, asked);
  asked.then(
    (made) => {
      sizes.set(key, made[LISTS[name]]?.length ?? 0);
      makeRoom(key);
    },
    () => kept.delete(key),
  );
  return asked;
}

/** Forget the answers that were asked for longest ago. @param {string} newest */
function makeRoom(newest) {
  let rows = 0;
  for (const size of sizes.values()) rows += size;
  for (const key of kept.keys()) {
    if ((kept.size <= KEPT && rows <= KEPT_ROWS) || key === newest) break;
    rows -= sizes.get(key) ?? 0;
    sizes.delete(key);
    kept.delete(key);
  }
}

/** Forget the answers of one name: something was done that changes them. @param {string} name */
export const forgetOf = (name) => {
  for (const key of kept.keys()) if (JSON.parse(key)[0] === name) kept.delete(key);
};

/** Forget all answers: the page looks at other runs from now on. */
export const forget = () => {
  kept.clear();
  sizes.clear();
};

/** The answer to a question, or the last one while the next is on its way. One question is under way at a time: of the
 * ticks that the cursor crosses meanwhile, only the last is asked for.
 * @param {string} name @param {Record<string, any> | null} params null: there is nothing to ask
 * @returns {{data: any, error: any, isOld: boolean}} */
export function useAnswer(name, params) {
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const box = useRef(/** @type {any} */ ({ data: null, error: null, shown: "", wanted: "", busy: false, gone: false }));
  const wanted = params === null ? "" : keyOf(name, params);
  useEffect(() => () => void (box.current.gone = true), []);
  useEffect(() => {
    const state = box.current;
    state.wanted = wanted;
    state.params = params;
    if (!state.busy && wanted && state.shown !== wanted) void fill(name, state, () => redraw(null));
  }, [wanted]);
  const { data, error, shown } = box.current;
  return wanted ? { data, error, isOld: shown !== wanted } : { data: null, error: null, isOld: false };
}

/** @param {string} name @param {any} state @param {() => void} redraw */
async function fill(name, state, redraw) {
  state.busy = true;
  while (state.wanted && state.shown !== state.wanted && !state.gone) {
    const asked = state.wanted;
    try {
      state.data = await ask(name, state.params);
      state.error = null;
    } catch (error) {
      state.error = error;
      state.data = null;
    }
    state.shown = asked;
    if (!state.gone) redraw();
  }
  state.busy = false;
}
