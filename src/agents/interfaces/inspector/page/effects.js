// Experiments with a run: what was changed, at which tick, and what it did.
import { html } from "#vendor/htm-preact";
import { go, link } from "#address";
import { site, useAnswer } from "#answers";
import { AgentLink, Panel } from "#bits";
import { Line, Num, counted } from "#text";
import { moveTo } from "#time";

/** @typedef {import("./types").Effect} Effect */

const REACHED = 12;

/** All experiments with the run. @param {{index: number}} props */
export function Effects({ index }) {
  const { data } = useAnswer("effects", { run: index });
  if (!data?.total) return null;
  return html`<div class="effects" id="effects">${data.effects.map((/** @type {Effect} */ each) => html`<${One} effect=${each} index=${index} />`)}
    ${data.total > data.effects.length && html`<p class="soft">and ${data.total - data.effects.length} more</p>`}</div>`;
}

/** That there are experiments, in a line. @param {{index: number}} props */
export function EffectsNote({ index }) {
  const { data } = useAnswer("effects", { run: index });
  if (!data?.total) return null;
  return html`<p class="soft" id="effects-note"><a href=${link({ view: "compare" })}>${counted(data.total, "experiment")} with this run</a>: <${Line} text=${data.effects[0].changed[0] ?? data.effects[0].name} most=${120} /></p>`;
}

/** @param {{effect: Effect, index: number}} props */
function One({ effect, index }) {
  const { at, changed, name, reached, statistics, until } = effect;
  const asked = statistics.some((row) => row.verdict);
  return html`<${Panel} title=${html`<${Line} text=${name} />`} note=${at === null ? "which memories mattered" : html`after <button class="tick-link" onClick=${() => moveTo(at)}>tick ${at}</button>, compared in tick ${until}`}>
    ${changed.map((words) => html`<p><${Line} text=${words} /></p>`)}
    <table class="given effect"><thead><tr><th>${at === null ? "what" : "metric"}</th><th class="number">pairs</th><th class="number">difference</th><th class="number">95 % interval</th>${asked && html`<th class="number">placebo</th><th>verdict</th>`}</tr></thead>
    <tbody>${statistics.map(
      (row) => html`<tr data-metric=${row.metric}><td><${Line} text=${row.metric} /></td><td class="number" data-label="pairs"><${Num} of=${row.n} /></td><td class="number" data-label="difference"><${Num} of=${row.mean} /></td>
        <td class="number" data-label="95 % interval">${row.interval}</td>${asked && html`<td class="number" data-label="placebo">${row.placebo || "–"}</td><td data-label="verdict"><${Line} text=${row.verdict} /></td>`}</tr>`,
    )}</tbody></table>
    ${reached.length > 0 && html`<p class="facts small"><span class="soft">reached</span> ${reached.slice(0, REACHED).map(([agent, tick]) => html`<span><${AgentLink} name=${agent} tick=${tick} run=${index} /> <span class="soft">in tick ${tick}</span></span> `)}
      ${reached.length > REACHED && html`<span class="soft">and ${reached.length - REACHED} more</span>`}</p>`}
    ${effect.has_runs && !site.provider.embedded && html`<p><button class="open-arms" onClick=${() => openArms(effect)}>Compare the run as it was and changed</button></p>`}
  <//>`;
}

/** Look at the two arms of an experiment, from where it began. @param {Effect} effect */
function openArms({ name, at, reached }) {
  go({ view: "compare", of: reached[0]?.[0] ?? "", run: 0, tick: reached[0]?.[1] ?? at, effect: name, more: {} });
}

/** Back to the run with which the experiment was made. */
export function leaveArms() {
  go({ view: "compare", of: "", run: 0, tick: null, effect: "", more: {} });
}
