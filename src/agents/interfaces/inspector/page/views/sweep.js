// A sweep: its points as a grid or a table, each leading to its runs.
import { html, useEffect, useState } from "#vendor/htm-preact";
import { filter, go } from "#address";
import { site, useAnswer } from "#answers";
import { missing } from "#bits";
import { amountColour, isLight } from "#palette";
import { Block, Line, Num, asText, counted, plain } from "#text";

/** @typedef {import("../types").Sweep} Sweep */
/** @typedef {import("../types").Point} Point */

/** @param {{address: any}} props */
export function SweepView({ address }) {
  const [look, again] = useState(0);
  const answer = useAnswer("sweep", look ? { look } : {});
  const [chosen, choose] = useState("");
  const { data } = answer;
  useEffect(() => {
    if (!data || data.is_finished || site.provider.embedded) return undefined;
    const timer = setTimeout(() => again(look + 1), LOOK_EVERY);
    return () => clearTimeout(timer);
  }, [data]);
  if (!data) return missing(answer);
  const point = data.points.find((/** @type {Point} */ each) => keyOf(each) === chosen);
  const metric = data.metrics.includes(address.more.metric) ? address.more.metric : (data.metrics[0] ?? "");
  return html`<div class="sweep">
    <div class="view-head"><h1><${Line} text=${data.name} /></h1>
      <label>colour: <select id="metric" value=${metric} onChange=${(/** @type {any} */ event) => filter({ metric: event.currentTarget.value })}>
        ${data.metrics.map((/** @type {string} */ name) => html`<option value=${name}>${plain(name)}</option>`)}</select></label>
      <span class="soft" id="points">mean over seeds; ${counted(data.points.length, "point")}${!data.is_finished && ` so far: the sweep is not finished, ${doneIn(data)}`}</span></div>
    ${data.question && html`<${Block} text=${data.question} />`}
    <${Grid} sweep=${data} metric=${metric} chosen=${chosen} choose=${choose} />
    ${point && html`<${Runs} point=${point} metrics=${data.metrics} />`}
  </div>`;
}

const LOOK_EVERY = 2000; // milliseconds

/** @param {Point} point */
const keyOf = (point) => JSON.stringify(point.values);

/** How many runs of a sweep are done. @param {Sweep} sweep */
function doneIn({ points, metrics }) {
  const runs = points.flatMap((point) => point.runs);
  const done = runs.filter((run) => metrics.some((name) => run.metrics[name] !== null));
  return `${done.length} of ${counted(runs.length, "run")} that began ${done.length === 1 ? "is" : "are"} done`;
}

/** @param {Point[]} points @param {string} name */
function valuesOf(points, name) {
  /** @type {Map<string, any>} */
  const found = new Map();
  for (const point of points) found.set(asText(point.values[name]), point.values[name]);
  const all = [...found.values()];
  return all.every((value) => typeof value === "number") ? all.sort((one, other) => one - other) : all;
}

const GONE = "The folder has no such run any more: the same tiermem sweep command makes it anew.";
const NO_SERVER = "An exported sweep has no runs in it: tiermem inspect SWEEP opens them, and tiermem inspect SWEEP/cells/NAME --export FILE writes one into a file.";

/** The last part of a setting's name, which says enough. @param {string} name */
const short = (name) => plain(name.split(".").at(-1) ?? "");

/** The last parameter goes to the right; all others, together, go down.
 * @param {{sweep: Sweep, metric: string, chosen: string, choose: (point: string) => void}} props */
function Grid({ sweep, metric, chosen, choose }) {
  const { parameters, points } = sweep;
  const across = parameters.length > 1 ? parameters[parameters.length - 1] : null;
  const down = across ? parameters.slice(0, -1) : parameters;
  const columns = across ? valuesOf(points, across) : [null];
  const rows = [...new Set(points.map((point) => JSON.stringify(down.map((name) => point.values[name]))))];
  const numbers = points.map((point) => point.metrics[metric]).filter((value) => typeof value === "number");
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  /** @param {string} row @param {any} column */
  const pointAt = (row, column) =>
    points.find((point) => JSON.stringify(down.map((name) => point.values[name])) === row && (!across || asText(point.values[across]) === asText(column)));
  return html`<table class="grid" id="grid"><thead><tr>${down.map((name) => html`<th title=${plain(name)}>${short(name)}</th>`)}
    ${columns.map((value) => html`<th class="number" title=${plain(across ?? metric)}>${across ? `${short(across)} = ${plain(asText(value))}` : plain(metric)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${JSON.parse(row).map((/** @type {any} */ value) => html`<th>${plain(asText(value))}</th>`)}
      ${columns.map((column) => {
        const point = pointAt(row, column);
        if (!point) return html`<td></td>`;
        const value = point.metrics[metric];
        const share = typeof value === "number" && high > low ? (value - low) / (high - low) : 0;
        return html`<td><button class=${"cell-button" + (isLight(share) ? " light" : "")} aria-pressed=${keyOf(point) === chosen} style=${{ background: amountColour(share) }} onClick=${() => choose(keyOf(point))}>
          <${Num} of=${value} /><small>${counted(point.runs.length, "run")}</small></button></td>`;
      })}</tr>`)}</tbody></table>`;
}

/** @param {{point: Point, metrics: string[]}} props */
function Runs({ point, metrics }) {
  return html`<h2>${Object.entries(point.values).map(([name, value]) => `${short(name)} = ${plain(asText(value))}`).join(", ")}</h2>
    <table class="given" id="runs"><thead><tr><th>run</th><th class="number">seed</th>${metrics.map((name) => html`<th class="number">${plain(name)}</th>`)}</tr></thead>
    <tbody>${point.runs.map((run) => html`<tr><td>${run.has_run && !site.provider.embedded ? html`<button class="tick-link" data-run=${run.name} onClick=${() => openRun(run.name)}>${run.name}</button>` : html`<span title=${run.has_run ? NO_SERVER : GONE}>${run.name}</span>`}</td>
      <td class="number" data-label="seed">${run.seed}</td>${metrics.map((name) => html`<td class="number" data-label=${plain(name)}><${Num} of=${run.metrics[name]} /></td>`)}</tr>`)}</tbody></table>
    ${site.provider.embedded && point.runs.some((run) => run.has_run) && html`<p class="soft" id="no-server">${NO_SERVER}</p>`}
    ${point.runs.every((run) => !run.has_run) && html`<p class="soft">${GONE}</p>`}`;
}

/** Look at a run of the sweep; without a name, at the sweep again. @param {string} name */
export function openRun(name) {
  go({ view: name ? "overview" : "sweep", of: "", agent: "", run: 0, tick: null, cell: name, effect: "", more: {} });
}
