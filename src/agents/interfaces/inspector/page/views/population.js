// All agents together: who told whom, which beliefs spread, how much two agents have in common.
import { html, useMemo, useState } from "#vendor/htm-preact";
import { filter } from "#address";
import { site, useAnswer } from "#answers";
import { AgentLink, MemoryLink, PageChoice, Panel, missing } from "#bits";
import { Word, meaningOf } from "#glossary";
import { Circle, Matrix, numberOf } from "#graph";
import { Scale, ends } from "#heat";
import { Line, Num, counted, number, plain } from "#text";
import { moveTo } from "#time";

/** @typedef {import("../types").Belief} Belief */
/** @typedef {import("../types").Edge} Edge */
/** @typedef {import("../types").Holder} Holder */
/** @typedef {import("../types").Numbers} Numbers */
/** @typedef {import("../types").Population} Population */

const AGENTS = 60; // rows of the matrix
const NOBODY = /** @type {Edge[]} */ ([]);

/** The edges of one belief: who brought it to whom. @param {Belief} belief @returns {Edge[]} */
const edgesOf = (belief) =>
  belief.first.flatMap(({ teller, agent, tick }) =>
    teller === null ? [] : [{ teller, listener: agent, times: 1, new: 1, first_tick: tick, last_tick: tick }],
  );

/** @param {{address: any, run: any, index: number, tick: number}} props */
export function PopulationView({ address, run, index, tick }) {
  const of = run.per_agent.includes(address.more.colour) ? address.more.colour : "";
  const coloured = useAnswer("numbers", of ? { run: index, of, tick } : null);
  const answer = useAnswer("population", { run: index, tick, limit: AGENTS });
  const [chosen, choose] = useState("");
  const data = /** @type {Population | null} */ (answer.data);
  const belief = data?.beliefs.find((each) => each.origin === address.more.belief);
  const edges = useMemo(() => (belief ? edgesOf(belief) : (data?.edges ?? NOBODY)), [data, belief]);
  if (!data) return missing(answer);
  const holders = belief ? new Set(belief.first.filter((each) => each.gone === null).map((each) => each.agent)) : null;
  const given = /** @type {Numbers | null} */ (coloured.data?.of === of ? coloured.data : null);
  const numbers = given && address.more.range === "tick" ? { ...given, ...ends([given.values]) } : given;
  const setBelief = (/** @type {string} */ origin) => filter({ belief: origin });
  return html`<div class="population" data-tick=${data.tick}>
    <${Panel} class="who" title=${belief ? "Who brought it to whom" : "Who told whom"} note=${noteOf(data, edges, belief)}>
      ${data.agents.length > 0
        ? html`<${ColourChoice} names=${run.per_agent} of=${of} />
          <${Circle} edges=${edges} all=${data.edges} agents=${data.agents} society=${data.society} holders=${holders} numbers=${numbers} tick=${data.tick} chosen=${chosen} choose=${choose} />
          ${of && !numbers ? missing(coloured) : html`<${Legend} numbers=${numbers} isOfTick=${address.more.range === "tick"} beliefs=${data.beliefs} belief=${belief} chosen=${chosen} />`}`
        : html`<p class="soft">No agent yet.</p>`}
      ${data.society && html`<p class="soft">Agents are where their society puts them; thin lines: who can hear whom in tick ${data.tick}.</p>`}
      ${data.edges.length > 0 && html`<p class="soft">orange: in this tick. A click on an agent shows its threads, a double click opens it.</p>`}
      ${data.edges.length === 0 && html`<p class="soft">Nobody was told anything up to tick ${data.tick}: no memory has a source or a speaker.</p>`}
    <//>
    <${Panel} class="beliefs" title=${html`<${Word} text="Beliefs that spread" title=${meaningOf("belief")} />`} note="how many hold each now; who had it first, and when">
      <${Beliefs} beliefs=${data.beliefs} agents=${data.total} belief=${belief} setBelief=${setBelief} />
    <//>
    <div class="column">
      <${Common} first=${data} from=${address.more.from ?? ""} index=${index} />
      ${belief
        ? html`<${Panel} class="told" id="tree" title="From agent to agent" note=${counted(belief.holders, "agent")}><${Tree} belief=${belief} index=${index} tick=${data.tick} /><//>`
        : html`<${Panel} class="told" id="told" title=${chosen ? `Told by or to ${plain(chosen)}` : "Told last"} note=${counted(data.told_total, "telling")}><${ToldList} told=${data.told} chosen=${chosen} index=${index} /><//>`}
    </div>
  </div>`;
}

/** A choice of what the colours of agents say. @param {{names: string[], of: string}} props */
function ColourChoice({ names, of }) {
  return html`<label class="colour-choice" title=${of ? meaningOf(of) : meaningOf("belief")}>colour by
    <select id="colour-by" value=${of} onChange=${(/** @type {any} */ event) => filter({ colour: event.currentTarget.value })}>
      <option value="">belief</option>
      ${names.map((name) => html`<option value=${name} selected=${name === of}>${plain(name)}</option>`)}
    </select></label>`;
}

/** What the colours of agents say. @param {{numbers: Numbers | null, isOfTick: boolean, beliefs: Belief[], belief: Belief | undefined, chosen: string}} props */
function Legend({ numbers, isOfTick, beliefs, belief, chosen }) {
  if (!numbers && !belief) return beliefs.length > 0 && html`<div class="colours soft">Choose a belief, and agents that hold it have a colour.</div>`;
  if (!numbers) return html`<div class="colours"><span class="key holds">holds the belief</span><span class="key lacks">does not</span></div>`;
  const meaning = meaningOf(numbers.of);
  return html`<div class="colours" data-of=${numbers.of} data-tick=${numbers.tick}>
    <${Scale} low=${numbers.low} high=${numbers.high} />
    <label title="the colours have the range of this tick, and not that of all ticks"><input type="checkbox" id="colour-range" checked=${isOfTick}
      onChange=${(/** @type {any} */ event) => filter({ range: event.currentTarget.checked ? "tick" : "" })} /> range of this tick</label>
    ${chosen && html`<span><b><${Line} text=${chosen} /></b> <${Num} of=${numberOf(numbers, chosen)} /></span>`}
    ${belief && html`<span class="key ring">holds the belief</span>`}
    <span class="soft">${plain(numbers.of)} in tick ${numbers.tick}${meaning ? `: ${meaning}` : ""}</span></div>`;
}

/** What each two agents have in common, some agents at a time; an exported file has the first ones.
 * @param {{first: Population, from: string, index: number}} props */
function Common({ first, from, index }) {
  const offset = /^\d+$/.test(from) && !site.provider.embedded ? Number(from) : 0;
  const other = useAnswer("population", offset ? { run: index, tick: first.tick, offset, limit: AGENTS } : null);
  const data = offset ? /** @type {Population | null} */ (other.data) : first;
  const isCut = first.total > first.agents.length;
  const choice = html`<${PageChoice} what="agents" id="overlap-from" total=${first.total} size=${AGENTS} offset=${offset} set=${(/** @type {number} */ at) => filter({ from: String(at || "") })} />`;
  const note = !isCut ? "share of beliefs that two agents both hold" : site.provider.embedded ? `the first ${first.agents.length} of ${first.total} agents` : choice;
  return html`<${Panel} class="overlap" title="In common" note=${note}>
    ${data ? html`<${Matrix} agents=${data.agents} overlap=${data.overlap} />` : missing(other)}
  <//>`;
}

/** @param {Population} data @param {Edge[]} edges @param {Belief | undefined} belief */
function noteOf(data, edges, belief) {
  if (belief) return belief.by === "source" ? counted(edges.length, "telling") : "agents with the same text; no memory says whose it is";
  if (data.edges_total > edges.length) return `the ${edges.length} busiest of ${number(data.edges_total)} pairs`;
  return `${counted(data.told_total, "telling")} between ${counted(edges.length, "pair")}`;
}

/** @param {{beliefs: Belief[], agents: number, belief: Belief | undefined, setBelief: (origin: string) => void}} props */
function Beliefs({ beliefs, agents, belief, setBelief }) {
  if (!beliefs.length) return html`<p class="soft">No two agents hold the same belief.</p>`;
  return html`<ul class="belief-list" id="beliefs">${beliefs.map((each) => {
    const isChosen = each === belief;
    const share = (/** @type {number} */ count) => ({ width: `${(100 * count) / Math.max(1, agents)}%` });
    return html`<li data-origin=${each.origin}><button aria-pressed=${isChosen} onClick=${() => setBelief(isChosen ? "" : each.origin)} title=${plain(each.text.slice(0, 300))}>
      <span class="bar"><i class="once" style=${share(each.holders)}></i><i style=${share(each.now)}></i></span>
      <span class="count"><${Num} of=${each.now} /></span><${Line} text=${each.text} /><span class="soft since"><${Line} text=${each.agent} most=${12} />, ${each.tick}</span></button>
      ${isChosen && html`<${Figures} belief=${each} />`}</li>`;
  })}</ul>`;
}

/** @param {{belief: Belief}} props */
function Figures({ belief }) {
  const { holders, now, tells, r, depth, half_life: half, tick } = belief;
  return html`<p class="facts small figures"><span><b>${now}</b> <span class="soft">hold it,</span> <b>${holders}</b> <span class="soft">held it at some time</span></span>
    <span><span class="soft">half of them within</span> <${Num} of=${half} /> <span class="soft">ticks</span></span>
    ${belief.by === "source" && html`<span><span class="soft">told</span> <${Num} of=${tells} /> <span class="soft">times</span></span>
      <span><span class="soft"><${Word} text="R" /></span> <${Num} of=${r} /></span>
      <span><span class="soft">through up to</span> <${Num} of=${depth} /> <span class="soft"><${Word} text="hands" /></span></span>`}
    <button class="tick-link" onClick=${() => moveTo(tick)}>to its first tick</button></p>`;
}

/** Below each agent, farther in, those whom it told. @param {{belief: Belief, index: number, tick: number}} props */
function Tree({ belief, index, tick }) {
  const names = new Set(belief.first.map((each) => each.agent));
  /** @type {Map<string | null, Holder[]>} */
  const below = new Map();
  for (const each of belief.first) {
    const above = each.teller !== null && names.has(each.teller) ? each.teller : null;
    below.set(above, [...(below.get(above) ?? []), each]);
  }
  /** @type {{depth: number, holder: Holder}[]} */
  const lines = [];
  const seen = new Set();
  const add = (/** @type {Holder[] | undefined} */ holders, /** @type {number} */ depth) => {
    for (const holder of holders ?? []) {
      if (seen.has(holder)) continue;
      seen.add(holder);
      lines.push({ depth, holder });
      add(below.get(holder.agent), depth + 1);
    }
  };
  add(below.get(null), 0);
  add(belief.first, 0); // Speakers need not have had it before: they may be in a circle.
  const left = belief.holders - belief.first.length;
  return html`<ol class="events tree">${lines.map(
    ({ depth, holder }) => html`<li class=${holder.tick === tick ? "now" : ""} style=${{ paddingLeft: `${Math.min(depth, 12) * 14}px` }}>
      <button class="tick-link" onClick=${() => moveTo(holder.tick)}>${holder.tick}</button> <${AgentLink} name=${holder.agent} tick=${holder.tick} run=${index} />
      ${depth === 0 && holder.teller !== null && html`<span class="soft"> told by</span> <${AgentLink} name=${holder.teller} run=${index} />`}
      <${MemoryLink} id=${holder.memory_id} text="its memory" run=${index} />${holder.gone !== null && html`<span class="soft"> gone in tick ${holder.gone}</span>`}</li>`,
  )}</ol>${left > 0 && html`<p class="soft">and ${left} more</p>`}`;
}

/** @param {{told: import("../types").Told[], chosen: string, index: number}} props */
function ToldList({ told, chosen, index }) {
  const shown = told.filter((each) => !chosen || each.teller === chosen || each.listener === chosen).slice(-60).reverse();
  if (!shown.length) return html`<p class="soft">nothing yet</p>`;
  return html`<ol class="events">${shown.map(
    (each) => html`<li><span class="what">${each.tick}</span> <${AgentLink} name=${each.teller} tick=${each.tick} run=${index} /> → <${AgentLink} name=${each.listener} tick=${each.tick} run=${index} />
      <${MemoryLink} id=${each.memory_id} text=${each.text} run=${index} /></li>`,
  )}</ol>`;
}
