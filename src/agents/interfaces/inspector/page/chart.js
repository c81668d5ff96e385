// Curves in strips, one above another, on one axis of ticks.
import { html, useEffect } from "#vendor/htm-preact";
import uPlot from "#vendor/uplot";
import { useScheme, useSize } from "#bits";
import { meaningOf } from "#glossary";
import { colour } from "#palette";
import { Name, Num, marked, plain } from "#text";
import { span } from "#time";

/** @typedef {{name: string, values: (number | null)[], colour: string, isDashed?: boolean, ticks?: number[]}} Curve */

export const LABELS = 132; // pixels: names at the left of the strips
export const SCALE = 52; // pixels: numbers between names and curves
export const GUTTER = LABELS + SCALE;

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** The place of the last tick that is not after `tick`; -1 when there is none.
 * @param {number[]} ticks @param {number} tick */
export function placeOf(ticks, tick) {
  let low = 0;
  let high = ticks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ticks[middle] <= tick) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** @param {(number | null)[][]} columns each on top of the one before */
function piled(columns) {
  /** @type {(number | null)[]} */
  let below = [];
  return columns.map((column) => (below = column.map((value, at) => (value ?? 0) + (below[at] ?? 0))));
}

/** @param {{width: number, height: number, hasTicks: boolean, curves: Curve[], isPiled: boolean}} props */
function options({ width, height, hasTicks, curves, isPiled }) {
  const { first, last } = span();
  const soft = colour("--soft");
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: soft, font, ticks: { show: false }, grid: { stroke: colour("--rule"), width: 1 } };
  const series = curves.map((curve) => ({
    stroke: curve.colour,
    width: isPiled ? 0 : 1.5,
    fill: isPiled ? curve.colour : undefined,
    dash: curve.isDashed ? [5, 4] : undefined,
    points: { show: curve.values.length === 1 },
    spanGaps: false,
    paths: isPiled ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
  }));
  return {
    width, height, series: [{}, ...series],
    padding: [6, 0, hasTicks ? 0 : 4, 0],
    legend: { show: false }, cursor: { show: false },
    scales: { x: { time: false, range: () => [first - 0.5, last + 0.5] }, y: { range: rangeOf } },
    axes: [
      { ...axis, show: hasTicks, size: 22, gap: 2, space: 60, grid: { show: false }, values: labels(last), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] },
      { ...axis, size: SCALE, gap: 6, space: 26, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((each) => compact.format(each)) },
    ],
  };
}

/** The ticks of the axis, without one whose number would be cut at the right. @param {number} last */
const labels = (last) => (/** @type {any} */ plot, /** @type {number[]} */ ticks) =>
  ticks.map((tick) => (plot.valToPos(last + 0.5, "x") - plot.valToPos(tick, "x") < 14 ? null : tick));

/** @param {any} _ @param {number | null} low @param {number | null} high */
function rangeOf(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const from = Math.min(0, low);
  return high > from ? [from, high + (high - from) * 0.06] : [from, from + 1];
}

/** Pixels of a strip: a low screen shows the map below the curves, and a higher one has higher curves. */
const heightOf = () => (innerHeight < 850 ? 54 : 98);

/** One strip: a name, the numbers at the cursor, and curves.
 * @param {{name: string, about?: string, ticks: number[], curves: Curve[], tick: number, height?: number, isPiled?: boolean, hasTicks?: boolean}} props */
export function Strip({ name, about, ticks, curves, tick, height = heightOf(), isPiled = false, hasTicks = false }) {
  const [ref, { width }] = useSize();
  const scheme = useScheme();
  const full = height + (hasTicks ? 22 : 0);
  const { first, last } = span();
  useEffect(() => {
    if (width <= SCALE) return undefined;
    const columns = curves.map((curve) => curve.values);
    // The highest pile is drawn first, so that each covers what belongs to those below it.
    const drawn = isPiled ? [...curves].reverse() : curves;
    const data = isPiled ? piled(columns).reverse() : columns;
    const plot = new uPlot(options({ width, height: full, hasTicks, curves: drawn, isPiled }), [ticks, ...data], ref.current);
    return () => plot.destroy();
  }, [ticks, curves, width, scheme, full, hasTicks, first, last]);
  return html`<div class="strip" data-strip=${name}>
    <div class="strip-label" title=${about ? plain(about) : (meaningOf(name) ?? plain(name))}>
      <span class="name">${marked(name)}</span>
      ${curves.map((curve) => html`<${Value} curve=${curve} ticks=${curve.ticks ?? ticks} tick=${tick} isNamed=${curves.length > 1} />`)}
    </div>
    <div class="strip-plot" ref=${ref} style=${{ height: `${full}px` }}></div>
  </div>`;
}

/** @param {{curve: Curve, ticks: number[], tick: number, isNamed: boolean}} props */
function Value({ curve, ticks, tick, isNamed }) {
  const place = placeOf(ticks, tick);
  const value = place < 0 ? null : curve.values[place];
  return html`<span class="value" data-curve=${curve.name}>
    ${isNamed && html`<i class="swatch" style=${{ background: curve.colour }}></i><span class="curve"><${Name} text=${curve.name} /></span>`}
    <${Num} of=${value} />
  </span>`;
}
