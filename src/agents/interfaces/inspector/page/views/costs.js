// What the calls of a language model cost: tick by tick, by what they were for, by model and by agent.
import { html, useMemo } from "#vendor/htm-preact";
import { useAnswer } from "#answers";
import { AgentLink, Panel, missing } from "#bits";
import { GUTTER, Strip } from "#chart";
import { dragging, shareOf, tickAt } from "#cursor";
import { Word } from "#glossary";
import { RUNS, RUNS_DARK, TIERS, isDark } from "#palette";
import { Line, Num, counted } from "#text";
import { moveTo } from "#time";

/** @typedef {import("./../types").Costs} Costs */

const COLOURS = { "read anew": TIERS.important, cached: TIERS.normal, written: TIERS.pinned };
/** The numbers of a table's row: what they are called, and where they are. */
const NUMBERS = { calls: "calls", "tokens read": "read", cached: "cached", written: "written", seconds: "seconds", "median seconds": "median_seconds", cost: "cost" };
const TABLES = { kind: "By what it was asked for", model: "By model", agent: "By agent" };

/** @param {{index: number, tick: number}} props */
export function CostsView({ index, tick }) {
  const answer = useAnswer("costs", { run: index });
  const dark = isDark();
  /** @type {{data: Costs}} */
  const { data } = answer;
  const strips = useMemo(() => {
    if (!data) return null;
    const colour = (dark ? RUNS_DARK : RUNS)[0];
    const one = (/** @type {string} */ name, /** @type {any} */ values) => [{ name, values, colour }];
    const tokens = Object.entries(COLOURS).map(([name, own]) => ({ name, values: data.tokens[name], colour: own }));
    return { tokens, seconds: one("seconds", data.seconds), cost: one("cost", data.cost), calls: one("calls", data.calls) };
  }, [data, dark]);
  if (!strips) return missing(answer);
  const { all, problems } = data;
  const hasCost = data.cost.some((each) => each);
  return html`<div class="costs">
    <p class="facts" id="costs-all"><span><${Num} of=${all.calls} /> calls</span><span>${data.estimated && "about "}<${Num} of=${all.read} /> <${Word} text="tokens read" /></span><span><${Num} of=${all.cached} /> <${Word} text="cached" /> (${share(all)})</span>
      <span><${Num} of=${all.written} /> <${Word} text="written" /></span><span><${Num} of=${all.median_seconds} /> <${Word} text="median seconds" /></span>
      ${all.cost === null ? html`<span class="soft">no price is known (llm.prices)</span>` : html`<span><${Word} text="cost" /> <${Num} of=${all.cost} /></span>`}
      <span><${Num} of=${data.usable} /> <${Word} text="usable" /></span></p>
    <div class="axis-of-ticks">
      <div class="on-axis" onPointerDown=${dragging((share) => moveTo(tickAt(share)), GUTTER)}>
        <${Strip} name="tokens" about="of prompts and answers, in each tick" ticks=${data.ticks} curves=${strips.tokens} tick=${tick} isPiled=${true} />
        ${hasCost && html`<${Strip} name="cost" ticks=${data.ticks} curves=${strips.cost} tick=${tick} />`}
        <${Strip} name="calls" about="in each tick" ticks=${data.ticks} curves=${strips.calls} tick=${tick} />
        <${Strip} name="seconds" about="of all answers of a tick, one after the other" ticks=${data.ticks} curves=${strips.seconds} tick=${tick} hasTicks=${true} />
      </div>
      <div class="cursor-line" style=${{ left: `calc(${GUTTER}px + (100% - ${GUTTER}px) * ${shareOf(tick)})` }}></div>
    </div>
    ${Object.entries(TABLES).map(([name, title]) => html`<${Table} name=${name} title=${title} data=${data} index=${index} hasCost=${hasCost} />`)}
    ${problems.length > 0 && html`<${Panel} id="problems" title="Answers that were not usable" note=${counted(problems.length, "reason")}>
      <table class="given"><thead><tr><th>why</th><th class="number">times</th><th>first</th></tr></thead>
      <tbody>${problems.map(({ why, times, agent, tick: first }) => html`<tr><td class="text"><${Line} text=${why} most=${300} /></td><td class="number" data-label="times"><${Num} of=${times} /></td>
        <td><${AgentLink} name=${agent} tick=${first} run=${index} /> <span class="soft">in tick ${first}</span></td></tr>`)}</tbody></table>
    <//>`}
  </div>`;
}

/** @param {Costs["all"]} all */
const share = ({ read, cached }) => `${read ? Math.round((100 * cached) / read) : 0} %`;

/** @param {{name: string, title: string, data: Costs, index: number, hasCost: boolean}} props */
function Table({ name, title, data, index, hasCost }) {
  const rows = data.by[name];
  const shown = Object.entries(NUMBERS).filter(([word]) => word !== "cost" || hasCost);
  const more = name === "agent" ? data.agents - rows.length : 0;
  return html`<${Panel} id=${"costs-by-" + name} title=${title}>
    <table class="given effect"><thead><tr><th>${name}</th>${shown.map(([word]) => html`<th class="number"><${Word} text=${word} /></th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr data-of=${row.name}><td>${name === "agent" ? html`<${AgentLink} name=${row.name} run=${index} />` : html`<${Line} text=${row.name} />`}</td>
      ${shown.map(([word, key]) => html`<td class="number" data-label=${word}><${Num} of=${/** @type {any} */ (row)[key]} /></td>`)}</tr>`)}</tbody></table>
    ${more > 0 && html`<p class="soft">and ${more} more, with fewer tokens</p>`}
  <//>`;
}
