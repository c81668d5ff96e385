// All agents together: who told whom, which beliefs spread, how much two agents have in common.
import { html, useState } from "#vendor/htm-preact";
import { useAnswer } from "#answers";
import { AgentLink, MemoryLink, Panel, missing } from "#bits";
import { Circle, Matrix } from "#graph";
import { Line, Num, counted } from "#text";

/** @typedef {import("../types").Belief} Belief */
/** @typedef {import("../types").Told} Told */

/** @param {{address: any, run: any, index: number, tick: number}} props */
export function PopulationView({ run, index, tick }) {
  const answer = useAnswer("population", { run: index, tick });
  const [chosen, choose] = useState("");
  const [belief, setBelief] = useState("");
  const { data } = answer;
  if (!data) return missing(answer);
  const held = data.beliefs.find((/** @type {Belief} */ each) => each.text === belief);
  return html`<div class="population" data-tick=${data.tick}>
    <${Panel} class="who" title="Who told whom" note=${data.told_total > data.told.length ? `the last ${data.told.length} of ${data.told_total}` : counted(data.told.length, "telling")}>
      ${data.told.length > 0 || data.agents.length > 0
        ? html`<${Circle} told=${data.told} agents=${data.agents} holders=${held ? new Set(held.holders) : null} tick=${data.tick} chosen=${chosen} choose=${choose} />`
        : html`<p class="soft">No agent yet.</p>`}
      ${data.told.length > 0 && html`<p class="soft">orange: told in this tick. A click on an agent shows its threads, a double click opens it.</p>`}
      ${data.told.length === 0 && html`<p class="soft">No memory says who told it: none has a speaker or source in its metadata.</p>`}
    <//>
    <${Panel} class="beliefs" title="Beliefs that spread" note="texts that several agents hold">
      <${Beliefs} beliefs=${data.beliefs} agents=${run.agents.length} belief=${belief} setBelief=${setBelief} />
      <//>
    <div class="column">
    <${Panel} class="overlap" title="In common" note=${data.total > data.agents.length ? `the first ${data.agents.length} of ${data.total} agents` : "share of texts that two agents both hold"}>
      <${Matrix} agents=${data.agents} overlap=${data.overlap} />
    <//>
    <${Panel} class="told" title=${chosen ? `Told by or to ${chosen}` : `Told last`}>
      <${ToldList} told=${data.told} chosen=${chosen} index=${index} />
    <//>
    </div>
  </div>`;
}

/** @param {{beliefs: Belief[], agents: number, belief: string, setBelief: (text: string) => void}} props */
function Beliefs({ beliefs, agents, belief, setBelief }) {
  if (!beliefs.length) return html`<p class="soft">No two agents hold the same text.</p>`;
  return html`<ul class="belief-list" id="beliefs">${beliefs.map(
    (each) => html`<li><button aria-pressed=${each.text === belief} onClick=${() => setBelief(each.text === belief ? "" : each.text)} title=${each.text.slice(0, 300)}>
      <span class="bar"><i style=${{ width: `${(100 * each.count) / Math.max(1, agents)}%` }}></i></span>
      <span class="count"><${Num} of=${each.count} /></span><${Line} text=${each.text} /><span class="soft since">since ${each.since}</span></button></li>`,
  )}</ul>`;
}

/** @param {{told: Told[], chosen: string, index: number}} props */
function ToldList({ told, chosen, index }) {
  const shown = told.filter((each) => !chosen || each.from === chosen || each.to === chosen).slice(-60).reverse();
  if (!shown.length) return html`<p class="soft">nothing yet</p>`;
  return html`<ol class="events">${shown.map(
    (each) => html`<li><span class="what">${each.tick}</span> <${AgentLink} name=${each.from} tick=${each.tick} run=${index} /> → <${AgentLink} name=${each.to} tick=${each.tick} run=${index} />
      <${MemoryLink} id=${each.memory_id} text=${each.text} run=${index} /></li>`,
  )}</ol>`;
}
