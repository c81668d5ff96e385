// Agents × ticks as a map of colours, on the axis of the strips.
import { html, useEffect, useRef, useState } from "#vendor/htm-preact";
import { go, link } from "#address";
import { useSize } from "#bits";
import { LABELS, GUTTER, placeOf } from "#chart";
import { amount, amountColour } from "#palette";
import { Line, number } from "#text";
import { span } from "#time";

/** @typedef {import("./types").Heat} Heat */

const HIGHEST = 20; // pixels of a row
const LOWEST = 4;
const ROOM = 0.34; // of the window: the map should not be higher
const NAMED = 11; // a row that is at least so high shows its agent's name

/** The least and the largest number that is known; 0 where none is. @param {Heat["values"]} rows */
export function ends(rows) {
  let low = Infinity;
  let high = -Infinity;
  for (const row of rows) {
    for (const value of row) {
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? { low, high } : { low: 0, high: 0 };
}

/** Where a value is between two others, from 0 to 1. @param {number} value @param {number} low @param {number} high */
export const shareIn = (value, low, high) => (high > low ? (value - low) / (high - low) : 0);

/** @param {HTMLCanvasElement} canvas @param {Heat} heat @param {number} width @param {number} height @param {{low: number, high: number}} range */
function draw(canvas, heat, width, height, { low, high }) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const columns = heat.ticks.length;
  if (!columns || !heat.values.length) return;
  const picture = new ImageData(columns, heat.values.length);
  heat.values.forEach((row, y) =>
    row.forEach((value, x) => {
      if (value === null) return;
      const [red, green, blue] = amount(shareIn(value, low, high));
      picture.data.set([red, green, blue, 255], 4 * (y * columns + x));
    }),
  );
  const small = new OffscreenCanvas(columns, heat.values.length);
  /** @type {OffscreenCanvasRenderingContext2D} */ (small.getContext("2d")).putImageData(picture, 0, 0);
  const { first, last } = span();
  const perTick = canvas.width / (last - first + 1);
  context.imageSmoothingEnabled = false;
  const from = (heat.ticks[0] - heat.width + 1 - first) * perTick;
  const until = (heat.ticks[columns - 1] + 1 - first) * perTick;
  context.drawImage(small, from, 0, until - from, canvas.height);
}

/** @param {{heat: Heat}} props */
export function HeatMap({ heat }) {
  const [ref, { width }] = useSize();
  const canvas = useRef(null);
  const [over, setOver] = useState(/** @type {any} */ (null));
  const { first, last } = span();
  const row = Math.max(LOWEST, Math.min(HIGHEST, Math.floor((ROOM * innerHeight) / Math.max(1, heat.agents.length))));
  const height = row * heat.agents.length;
  const range = ends(heat.values);
  const inner = width - GUTTER;
  useEffect(() => {
    if (inner > 0) draw(canvas.current, heat, inner, height, range);
  }, [heat, inner, height, first, last]);
  /** @param {any} event */
  const cell = (event) => {
    const tick = first + Math.floor((event.offsetX / inner) * (last - first + 1));
    const agent = Math.min(heat.agents.length - 1, Math.floor(event.offsetY / row));
    const column = placeOf(heat.ticks, tick + heat.width - 1);
    return { tick, agent: heat.agents[agent], value: heat.values[agent]?.[column], x: event.offsetX, y: event.offsetY };
  };
  return html`<div class="heat" ref=${ref}>
    <div class="heat-names" style=${{ height: `${height}px`, width: `${LABELS + 44}px` }}>
      ${row >= NAMED
        ? heat.agents.map((name) => html`<a class="agent" style=${{ height: `${row}px`, lineHeight: `${row}px` }} href=${link({ view: "agent", of: name })}><${Line} text=${name} /></a>`)
        : html`<span class="soft"><${Line} text=${heat.agents[0]} /></span><span class="soft"><${Line} text=${heat.agents.at(-1)} /></span>`}
    </div>
    <canvas ref=${canvas} id="heat" role="img" aria-label=${`${heat.of} of each agent in each tick`} style=${{ width: `${Math.max(0, inner)}px`, height: `${height}px` }}
      onPointerMove=${(/** @type {any} */ event) => setOver(cell(event))} onPointerLeave=${() => setOver(null)}
      onClick=${(/** @type {any} */ event) => go({ view: "agent", of: cell(event).agent, tick: cell(event).tick, more: {} })}></canvas>
    ${over && html`<div class="tip" style=${{ left: `${GUTTER + Math.min(over.x + 12, inner - 200)}px`, top: `${over.y + 14}px` }}>
      <b><${Line} text=${over.agent} /></b> tick ${over.tick}: ${number(over.value)}</div>`}
    <${Scale} low=${range.low} high=${range.high} />
  </div>`;
}

/** Which colours stand for which numbers. @param {{low: number, high: number}} props */
export function Scale({ low, high }) {
  return html`<div class="heat-scale"><span>${number(low)}</span>
    <span class="ramp">${[...Array(24).keys()].map((at) => html`<i style=${{ background: amountColour(at / 23) }}></i>`)}</span>
    <span>${number(high)}</span><span class="soft">nothing known: empty</span></div>`;
}
