// A table that asks for and draws only the rows in sight: 50,000 rows scroll like 50.
import { html, useEffect, useReducer, useRef } from "#vendor/htm-preact";
import { ask, keyOf } from "#answers";
import { useSize, Failed } from "#bits";
import { meaningOf } from "#glossary";

/** @typedef {{name: string, title: string, class?: string, sort?: string, cell: (row: any) => any}} Column */

const ROW = 26; // pixels
const PAGE = 100; // rows of one question
const BEYOND = 12; // rows that are drawn above and below those in sight

/** @param {{ask: string, params: Record<string, any>, columns: Column[], sort?: string, onSort?: (sort: string) => void,
 *   onTotal?: (total: number, more?: boolean) => void, empty?: string, id?: string}} props */
export function LongTable({ ask: name, params, columns, sort = "", onSort, onTotal, empty = "none", id }) {
  const [ref, { height }] = useSize();
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const key = keyOf(name, params);
  const box = useRef(/** @type {any} */ ({ top: 0, pages: new Map(), asked: new Map(), total: null, shown: "", error: null }));
  const state = box.current;
  const from = Math.max(0, Math.floor(state.top / ROW) - BEYOND);
  const until = Math.min(state.total ?? 0, Math.ceil((state.top + height) / ROW) + BEYOND);

  /** @param {number} page @param {boolean} isFirst */
  const load = async (page, isFirst) => {
    if (state.asked.has(`${key} ${page}`)) return;
    state.asked.set(`${key} ${page}`, true);
    let found;
    try {
      found = await ask(name, { ...params, offset: page * PAGE, limit: PAGE });
    } catch (error) {
      if (state.key === key) Object.assign(state, { error, total: 0, shown: key, pages: new Map() });
      redraw(null);
      return;
    }
    if (state.key !== key) return;
    if (isFirst || state.shown !== key) Object.assign(state, { pages: new Map(), shown: key, error: null });
    state.pages.set(page, found.rows);
    state.total = found.total;
    onTotal?.(found.total, found.more);
    redraw(null);
  };
  useEffect(() => {
    state.key = key;
    state.asked = new Map();
    void load(Math.floor(from / PAGE), true);
  }, [key]);
  useEffect(() => {
    if (state.shown !== key) return;
    for (let page = Math.floor(from / PAGE); page * PAGE < until; page++) void load(page, false);
  });
  state.drawn = state.top;
  const rows = [];
  for (let at = from; at < until; at++) rows.push([at, state.pages.get(Math.floor(at / PAGE))?.[at % PAGE]]);
  const scrolled = (/** @type {any} */ event) => {
    state.top = event.currentTarget.scrollTop;
    if (Math.abs(state.top - state.drawn) >= (ROW * BEYOND) / 2) redraw(null);
  };
  return html`<div class="long-table" ref=${ref} onScroll=${scrolled} tabindex="0" role="table" id=${id} data-total=${state.total}
    aria-rowcount=${state.total} data-ready=${state.shown === key}>
    <div class="head" role="row">${columns.map((column) => html`<${Head} column=${column} sort=${sort} onSort=${onSort} />`)}</div>
    ${state.error && html`<${Failed} error=${state.error} />`}
    ${state.total === 0 && !state.error && html`<p class="soft none">${empty}</p>`}
    <div class="body" style=${{ height: `${(state.total ?? 0) * ROW}px` }}>
      <div class="window" style=${{ transform: `translateY(${from * ROW}px)` }}>
        ${rows.map(([at, row]) => html`<div class="row" role="row" key=${at} aria-rowindex=${at + 1} data-id=${row?.id}>
          ${columns.map((column) => html`<div role="cell" class=${"cell " + (column.class ?? "")}>${row ? column.cell(row) : "…"}</div>`)}
        </div>`)}
      </div>
    </div>
  </div>`;
}

/** @param {{column: Column, sort: string, onSort?: (sort: string) => void}} props */
function Head({ column, sort, onSort }) {
  const name = column.sort ?? "";
  if (!onSort || !name) return html`<div role="columnheader" class=${"cell " + (column.class ?? "")} title=${meaningOf(column.title)}>${column.title}</div>`;
  const isUp = sort === name;
  const isDown = sort === "-" + name;
  return html`<div role="columnheader" class=${"cell " + (column.class ?? "")} aria-sort=${isUp ? "ascending" : isDown ? "descending" : "none"}>
    <button class="sort" data-sort=${name} title=${meaningOf(name)} onClick=${() => onSort(isDown ? name : isUp ? "-" + name : name)}>
      ${column.title}${isUp ? " ↑" : isDown ? " ↓" : ""}</button></div>`;
}
