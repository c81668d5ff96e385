// Two runs on one axis: where they part, one decision in both, and memories that only one has.
import { html, useMemo, useState } from "#vendor/htm-preact";
import { current, go } from "#address";
import { forget, site, useAnswer } from "#answers";
import { Copy, Failed, MemoryLink, Panel, Tier, missing } from "#bits";
import { GUTTER, Strip } from "#chart";
import { dragging, shareOf, tickAt } from "#cursor";
import { DecisionParts } from "#decision";
import { RUNS, RUNS_DARK, isDark } from "#palette";
import { Line, counted, plain } from "#text";
import { moveTo } from "#time";
import { AgentChoice } from "#views/agent";
import { Effects } from "#effects";

const CURVES = 3; // metrics that are shown before one asks for all

/** @param {{address: any, run: any, index: number, tick: number}} props */
export function CompareView({ address, run, index, tick }) {
  if (site.about.runs.length < 2) {
    return html`<div class="hint"><h1>Compare two runs</h1>
      <p>This page shows one run. For two on one axis: <code>tiermem inspect RUN RUN2</code></p>
      <${Neighbours} />
      <p>Another run with one thing changed comes from the view Branch. What a change did, over many runs: <code>tiermem effect RUN --out FOLDER</code></p></div>
      <${Effects} index=${index} />`;
  }
  return html`<${Both} agent=${address.of || run.agents[0]} run=${run} tick=${tick} />`;
}

/** Open a run that lies beside the first one as the second. @param {string} name */
async function compareWith(name) {
  await site.provider.get("with", { name });
  Object.assign(site.about, await site.provider.get("about", {}));
  forget();
  go({ view: "compare", of: current().agent, run: 0, more: {} });
}

/** The runs in the folder of this run. */
function Neighbours() {
  const { data } = useAnswer("beside", { run: 0 });
  const [error, setError] = useState(/** @type {any} */ (null));
  if (!data?.total) return null;
  const open = (/** @type {string} */ name) => compareWith(name).catch(setError);
  return html`<${Panel} title="Runs beside it" note=${counted(data.total, "run")} id="beside">
    <ul class="neighbours">${data.runs.map((/** @type {any} */ each) => html`<li><button class="tick-link" data-run=${each.name} onClick=${() => open(each.name)}><${Line} text=${each.name} /></button>
      <${Copy} text=${each.command} label="Copy the command" /></li>`)}</ul>
    ${data.total > data.runs.length && html`<p class="soft">the first ${data.runs.length} of ${data.total}</p>`}
    ${error && html`<${Failed} error=${error} />`}
  <//>`;
}

/** A choice of the second run, if it lies beside the first one. @param {{other: string}} props */
function OtherChoice({ other }) {
  const { data } = useAnswer("beside", site.about.around ? null : { run: 0 });
  const [error, setError] = useState(/** @type {any} */ (null));
  if (!data?.runs.some((/** @type {any} */ each) => each.name === other)) return null;
  return html`<label>with <select id="other" value=${other} onChange=${(/** @type {any} */ event) => compareWith(event.currentTarget.value).catch(setError)}>
    ${data.runs.map((/** @type {any} */ each) => html`<option value=${each.name}>${plain(each.name)}</option>`)}</select></label>${error && html`<${Failed} error=${error} />`}`;
}

/** @param {{agent: string, run: any, tick: number}} props */
function Both({ agent, run, tick }) {
  const answer = useAnswer("compare", { agent, tick });
  const { data } = answer;
  const first = data?.first_difference;
  const [left, right] = site.about.runs;
  return html`<div class="compare">
    <div class="view-head"><${AgentChoice} run=${run} agent=${agent} view="compare" /> <h1>in tick ${tick}</h1> <${OtherChoice} other=${right.name} />
      ${data && html`<p class="parted" id="parted" data-tick=${first?.tick}>${first
        ? html`The runs part in <button class="tick-link" onClick=${() => go({ tick: first.tick, of: first.agent ?? agent })}>tick ${first.tick}</button>${first.agent ? `, at ${plain(first.agent)}` : ""}: <${Line} text=${first.what} most=${120} />`
        : "The runs are equal after every tick that both have."}</p>`}
    </div>
    <${SharedCurves} tick=${tick} parted=${first?.tick ?? null} />
    ${data
      ? html`<div class="columns">
        <${Side} index=${0} name=${left.name} decision=${data.left} only=${data.only_left} total=${data.only_left_total} />
        <${Side} index=${1} name=${right.name} decision=${data.right} only=${data.only_right} total=${data.only_right_total} />
      </div>`
      : missing(answer)}
  </div>`;
}

/** @param {{tick: number, parted: number | null}} props */
function SharedCurves({ tick, parted }) {
  const left = useAnswer("series", { run: 0 });
  const right = useAnswer("series", { run: 1 });
  const [isAll, setAll] = useState(false);
  const dark = isDark();
  const strips = useMemo(() => {
    if (!left.data || !right.data) return null;
    const colours = dark ? RUNS_DARK : RUNS;
    const ticks = [...new Set([...left.data.ticks, ...right.data.ticks])].sort((one, other) => one - other);
    const names = Object.keys(left.data.metrics).filter((name) => name in right.data.metrics);
    const apart = names.filter((name) => JSON.stringify(left.data.metrics[name]) !== JSON.stringify(right.data.metrics[name]));
    return {
      ticks,
      metrics: [...apart, ...names.filter((name) => !apart.includes(name))].map((name) => ({
        name,
        curves: [left.data, right.data].map((data, at) => ({
          name: site.about.runs[at].name, values: spread(data.ticks, data.metrics[name], ticks), colour: colours[at], isDashed: at === 1,
        })),
      })),
    };
  }, [left.data, right.data, dark]);
  if (!strips) return missing(left.data ? right : left);
  const { metrics, ticks } = strips;
  const shown = isAll ? metrics : metrics.slice(0, CURVES);
  const stop = (/** @type {any} */ event) => event.stopPropagation();
  return html`<div class="axis-of-ticks" onPointerDown=${dragging((share) => moveTo(tickAt(share)), GUTTER)}>
    ${shown.map(({ name, curves }, at) => html`<${Strip} key=${name} name=${name} ticks=${ticks} curves=${curves} tick=${tick} hasTicks=${at === shown.length - 1} />`)}
    ${metrics.length > CURVES && html`<button class="quiet more-curves" onPointerDown=${stop} onClick=${() => setAll(!isAll)}>
      ${isAll ? "fewer curves" : counted(metrics.length - CURVES, "more curve")}</button>`}
    ${parted !== null && html`<div class="parted-line" title="here the runs part" style=${{ left: `calc(${GUTTER}px + (100% - ${GUTTER}px) * ${shareOf(parted)})` }}></div>`}
    <div class="cursor-line" style=${{ left: `calc(${GUTTER}px + (100% - ${GUTTER}px) * ${shareOf(tick)})` }}></div>
  </div>`;
}

/** Values at their ticks, with gaps elsewhere. @param {number[]} from @param {(number | null)[]} values @param {number[]} ticks */
function spread(from, values, ticks) {
  const at = new Map(from.map((tick, place) => [tick, values[place]]));
  return ticks.map((tick) => at.get(tick) ?? null);
}

/** @param {{index: number, name: string, decision: any, only: any[], total: number}} props */
function Side({ index, name, decision, only, total }) {
  return html`<div class=${"column side run-" + index} data-side=${index}>
    <${Panel} title=${html`<i class="swatch"></i><${Line} text=${name} />`}>
      ${decision ? html`<${DecisionParts} decision=${decision} run=${index} />` : html`<p class="soft">This run has no such decision.</p>`}
    <//>
    <${Panel} title="Memories only here" note=${counted(total, "memory", "memories")}>
      ${only.length > 0
        ? html`<ul class="only">${only.map((row) => html`<li><${Tier} name=${row.tier} /> <span class="soft">${row.created}</span> <${MemoryLink} id=${row.id} text=${row.text} run=${index} /></li>`)}</ul>
          ${total > only.length && html`<p class="soft" data-not-shown=${total - only.length}>${counted(total - only.length, "more memory is", "more memories are")} not shown.</p>`}`
        : html`<p class="soft">none</p>`}
    <//>
  </div>`;
}
