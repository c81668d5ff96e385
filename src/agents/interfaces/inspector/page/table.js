// A table that draws only the rows in sight: 50,000 rows scroll like 50.
import { html, useEffect, useReducer, useRef } from "#vendor/htm-preact";
import { useAnswer } from "#answers";
import { useSize, Failed } from "#bits";
import { meaningOf } from "#glossary";

/** @typedef {{name: string, title: string, class?: string, sort?: string, cell: (row: any) => any}} Column */

const ROW = 26; // pixels
const BEYOND = 12; // rows that are drawn above and below those in sight

/** @param {{ask: string, params: Record<string, any>, columns: Column[], sort?: string, onSort?: (sort: string) => void,
 *   onTotal?: (total: number, more?: boolean) => void, empty?: string, id?: string}} props */
export function LongTable({ ask: name, params, columns, sort = "", onSort, onTotal, empty = "none", id }) {
  const [ref, { height }] = useSize();
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const { data, error, isOld } = useAnswer(name, params);
  const state = useRef({ top: 0, drawn: 0 }).current;
  const all = data?.rows ?? [];
  const from = Math.max(0, Math.floor(state.top / ROW) - BEYOND);
  const until = Math.min(all.length, Math.ceil((state.top + height) / ROW) + BEYOND);
  useEffect(() => {
    if (data) onTotal?.(data.total, data.more);
  }, [data]);
  state.drawn = state.top;
  const scrolled = (/** @type {any} */ event) => {
    state.top = event.currentTarget.scrollTop;
    if (Math.abs(state.top - state.drawn) >= (ROW * BEYOND) / 2) redraw(null);
  };
  return html`<div class="long-table" ref=${ref} onScroll=${scrolled} tabindex="0" role="table" id=${id} data-total=${data ? all.length : undefined}
    aria-rowcount=${all.length} data-ready=${!isOld}>
    <div class="head" role="row">${columns.map((column) => html`<${Head} column=${column} sort=${sort} onSort=${onSort} />`)}</div>
    ${error && html`<${Failed} error=${error} />`}
    ${data && !all.length && html`<p class="soft none">${empty}</p>`}
    <div class="body" style=${{ height: `${all.length * ROW}px` }}>
      <div class="window" style=${{ transform: `translateY(${from * ROW}px)` }}>
        ${all.slice(from, until).map((/** @type {any} */ row, /** @type {number} */ place) => html`<div class="row" role="row" key=${from + place} aria-rowindex=${from + place + 1} data-id=${row.id}>
          ${columns.map((column) => html`<div role="cell" class=${"cell " + (column.class ?? "")}>${column.cell(row)}</div>`)}
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
