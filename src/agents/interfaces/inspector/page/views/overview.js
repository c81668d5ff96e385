// The run at a glance: curves, tiers, temperatures, agents × ticks, and what happened in the cursor's tick.
import { html, useMemo, useState } from "#vendor/htm-preact";
import { filter } from "#address";
import { useAnswer } from "#answers";
import { AgentLink, MemoryLink, PageChoice, Panel, missing } from "#bits";
import { GUTTER, Strip } from "#chart";
import { dragging, shareOf, tickAt } from "#cursor";
import { EffectsNote } from "#effects";
import { Word, meaningOf } from "#glossary";
import { HeatMap } from "#heat";
import { RUNS, RUNS_DARK, TEMPERATURES, TIERS, isDark } from "#palette";
import { Line, Num, counted, plain } from "#text";
import { moveTo } from "#time";

const CURVES = 4; // metrics that are shown before one asks for all
const AGENTS = 100; // rows of the map
const EVENTS = 200; // of the tick, on a page

/** @param {Record<string, (number | null)[]>} columns @param {Record<string, string>} colours */
const curvesOf = (columns, colours) =>
  Object.keys(columns).map((name) => ({ name, values: columns[name], colour: colours[name] ?? "#888888" }));

/** @param {{address: any, run: any, index: number, tick: number}} props */
export function OverviewView({ address, run, index, tick }) {
  return html`<div class="overview">
    <div class="axis-of-ticks">
      <div class="on-axis" onPointerDown=${dragging((share) => moveTo(tickAt(share)), GUTTER)}><${Curves} index=${index} tick=${tick} /></div>
      <${EffectsNote} index=${index} />
      <${Heats} address=${address} run=${run} index=${index} />
      <div class="cursor-line" style=${{ left: `calc(${GUTTER}px + (100% - ${GUTTER}px) * ${shareOf(tick)})` }}></div>
    </div>
    <${InThisTick} index=${index} tick=${tick} />
  </div>`;
}

/** @param {{index: number, tick: number}} props */
function Curves({ index, tick }) {
  const answer = useAnswer("series", { run: index });
  const [isAll, setAll] = useState(false);
  const { data } = answer;
  const dark = isDark();
  const strips = useMemo(() => {
    if (!data) return null;
    const colour = (dark ? RUNS_DARK : RUNS)[0];
    return {
      metrics: Object.entries(data.metrics).map(([name, values]) => ({ name, curves: [{ name, values, colour }] })),
      tiers: curvesOf(data.tiers, TIERS),
      temperatures: curvesOf(data.temperatures, TEMPERATURES),
    };
  }, [data, dark]);
  if (!strips) return missing(answer);
  const { metrics, tiers, temperatures } = strips;
  const shown = isAll ? metrics : metrics.slice(0, CURVES);
  const stop = (/** @type {any} */ event) => event.stopPropagation();
  return html`
    ${shown.map(({ name, curves }) => html`<${Strip} key=${name} name=${name} ticks=${data.ticks} curves=${curves} tick=${tick} />`)}
    ${metrics.length > CURVES && html`<button class="quiet more-curves" onPointerDown=${stop} onClick=${() => setAll(!isAll)}>
      ${isAll ? "fewer curves" : `${counted(metrics.length - CURVES, "more curve")}`}</button>`}
    <${Strip} key="tiers:" name="memories by tier" ticks=${data.ticks} curves=${tiers} tick=${tick} isPiled=${true} height=${92} />
    <${Strip} key="temperatures:" name="by temperature" ticks=${data.ticks} curves=${temperatures} tick=${tick} isPiled=${true} hasTicks=${true} />`;
}

/** @param {{address: any, run: any, index: number}} props */
function Heats({ address, run, index }) {
  const of = run.per_agent.includes(address.more.heat) ? address.more.heat : run.per_agent[0];
  const offset = Number(address.more.from ?? 0);
  const answer = useAnswer("heat", of ? { run: index, of, offset, limit: AGENTS } : null);
  if (!of) return null;
  const { data } = answer;
  return html`<section class="heats">
    <div class="heats-head"><label title=${meaningOf(of)}>agents × ticks:
      <select id="heat-of" value=${of} onChange=${(/** @type {any} */ event) => filter({ heat: event.currentTarget.value })}>
        ${run.per_agent.map((/** @type {string} */ name) => html`<option value=${name}>${plain(name)}</option>`)}
      </select></label>
      ${data && html`<${PageChoice} what="agents" id="heat-from" total=${data.total} size=${AGENTS} offset=${offset} set=${(/** @type {number} */ from) => filter({ from: String(from) })} />`}
      ${data && data.width > 1 && html`<span class="soft">a column is ${data.width} ticks</span>`}
    </div>
    ${data ? html`<${HeatMap} heat=${data} />` : missing(answer)}
  </section>`;
}

/** Counts of this tick that are not 0, and that no strip shows. @param {Record<string, number>} counts */
const countsOf = (counts) => Object.entries(counts).filter(([name, value]) => value && !(name in TIERS) && !(name in TEMPERATURES));

/** @param {{index: number, tick: number}} props */
function InThisTick({ index, tick }) {
  const [page, setPage] = useState({ tick, offset: 0 });
  const offset = page.tick === tick ? page.offset : 0;
  const answer = useAnswer("tick", { run: index, tick, offset, limit: EVENTS });
  const { data } = answer;
  return html`<${Panel} class="in-this-tick" id="in-this-tick" title=${`In tick ${data?.tick ?? tick}`}
    note=${data && counted(data.total ?? data.events.length, "event")}>
    ${data && html`<dl class="counts">${countsOf(data.counts).map(
      ([name, value]) => html`<div data-count=${name}><dt><${Word} text=${name.replaceAll("_", " ")} /></dt><dd><${Num} of=${value} /></dd></div>`,
    )}</dl>`}
    ${data
      ? html`<ol class="events">${data.events.map(
          (/** @type {any} */ event) => html`<li><span class="what">${event.what}</span> <${AgentLink} name=${event.agent} tick=${tick} />
            <${MemoryLink} id=${event.memory_id} text=${event.text} />
            ${event.detail && html`<small class="detail"><${Line} text=${event.detail} /></small>`}</li>`,
        )}</ol>
        <${PageChoice} what="events" id="events-from" total=${data.total} size=${EVENTS} offset=${offset} set=${(/** @type {number} */ from) => setPage({ tick, offset: from })} />
        ${!data.events.length && html`<p class="soft">Nothing happened.</p>`}`
      : missing(answer)}
  <//>`;
}
