// A memory's life on a line: born, given, moved, demoted, expired; and the decisions that it took part in.
import { html } from "#vendor/htm-preact";
import { link } from "#address";
import { useAnswer } from "#answers";
import { AgentLink, Copy, Panel, Temperature, Tier, missing, useSize } from "#bits";
import { shareOf } from "#cursor";
import { Word, meaningOf } from "#glossary";
import { Block, Line, Num, asText, counted, plain } from "#text";
import { moveTo, span } from "#time";

/** @typedef {import("../types").Life} Life */

const HIDDEN = new Set(["id", "agent", "text", "tier", "kind", "created", "temperature", "metadata", "memory_source"]);

/** @param {{address: any, index: number, tick: number}} props */
export function MemoryView({ address, index, tick }) {
  const answer = useAnswer("memory", address.of ? { run: index, id: address.of } : null);
  if (!address.of) {
    return html`<div class="hint"><h1>A memory's life</h1><p>Click a memory in another view, or <a href=${link({ view: "search" })}>search</a> for one.</p></div>`;
  }
  const { data } = answer;
  return html`<div class="memory-view">${data ? html`<${Whole} life=${data} index=${index} tick=${tick} />` : missing(answer)}</div>`;
}

/** @param {{life: Life, index: number, tick: number}} props */
function Whole({ life, index, tick }) {
  const { memory, events, decisions, note, source } = life;
  const others = Object.entries({ ...memory.metadata, ...memory }).filter(
    ([name, value]) => !HIDDEN.has(name) && value !== null && asText(value) !== "" && asText(value) !== "{}" && asText(value) !== "[]",
  );
  return html`
    <div class="memory-text" id="memory-text"><${Block} text=${memory.text} /></div>
    <p class="facts">
      ${memory.kind && html`<span>${memory.kind}</span>`} <span><span class="soft">of</span> <${AgentLink} name=${memory.agent} tick=${memory.created} run=${index} /></span>
      <span><span class="soft">born in tick</span> <${Num} of=${memory.created} /></span>
      <${At} life=${life} tick=${tick} />
      ${memory.tier && html`<span id="in-the-end"><span class="soft">in the end</span> <${Tier} name=${memory.tier} /> <${Temperature} name=${memory.temperature} /></span>`}
      <span class="id"><span class="soft">id</span> <code>${memory.id}</code> <${Copy} text=${memory.id} /></span>
    </p>
    ${others.length > 0 && html`<p class="facts small">${others.map(([name, value]) => html`<span class="argument" data-fact=${name}><span class="soft"><${Word} text=${name.replaceAll("_", " ")} /></span> ${typeof value === "number" ? html`<${Num} of=${value} />` : html`<${Line} text=${asText(value)} most=${160} />`}</span> `)}</p>`}
    ${source && html`<p class="facts" id="source"><span><span class="soft">told by</span> <${AgentLink} name=${source.teller} tick=${source.tick} run=${index} /></span>
      <span><span class="soft">in tick</span> <${Num} of=${source.tick} /></span> <a class="memory" href=${link({ view: "memory", of: source.memory_id, run: index })}>the memory that was told</a>
      ${source.hands > 1 && html`<span><span class="soft">through</span> ${source.hands} <span class="soft">hands from</span> <${AgentLink} name=${source.origin_agent} run=${index} /></span>
      <a class="memory" href=${link({ view: "memory", of: source.origin_id, run: index })}>the first of the chain</a>`}</p>`}
    ${note && html`<p class="remark">${note}</p>`}
    <${LifeLine} life=${life} tick=${tick} />
    <div class="columns">
      <${Panel} title="Its life" note=${counted(events.length, "event")}>
        <ol class="events" id="life">${events.map(
          (event) => html`<li class=${event.tick === tick ? "now" : ""}><button class="tick-link" onClick=${() => moveTo(event.tick)}>tick ${event.tick}</button>
            <span class="what">${event.what}</span> <${Line} text=${event.text} />
            ${event.by && html` <span class="soft">by</span> <${By} by=${event.by} index=${index} tick=${event.tick} />`}</li>`,
        )}</ol>
      <//>
      <${Panel} title="Decisions that it took part in" note=${counted(decisions.length, "decision")}>
        ${decisions.length > memory.uses && html`<p class="soft" id="no-uses">${counted(decisions.length, "decision")}, and ${counted(memory.uses, "use")}: ${meaningOf("uses")}.</p>`}
        ${decisions.length > 0 ? html`<${Decisions} decisions=${decisions} index=${index} tick=${tick} />` : html`<p class="soft" id="no-decisions">${life.no_decisions ? html`<${Line} text=${life.no_decisions} />` : "It was never given to an agent."}</p>`}
      <//>
    </div>`;
}

/** Where the memory stands after the tick of the cursor.
 * @param {{life: Life, tick: number}} props */
function At({ life, tick }) {
  const { memory, events } = life;
  const last = events.filter((event) => event.tick <= tick).at(-1);
  if (memory.created !== null && tick < memory.created) {
    return html`<span id="at-tick"><span class="soft">in tick ${tick}</span> not born yet</span>`;
  }
  if (!last?.tier || !last.temperature) return null; // Its journal began after its birth.
  const isExpired = last.expires !== null && last.expires <= tick && last.tier !== "pinned";
  const word = last.what === "gone" ? "gone" : last.retention !== "active" ? last.retention : isExpired ? "expired" : "";
  return html`<span id="at-tick"><span class="soft">after tick ${tick}</span> <${Tier} name=${last.tier} /> <${Temperature} name=${last.temperature} />${word && ` · ${word}`}</span>`;
}

/** @param {{by: string, index: number, tick: number}} props */
function By({ by, index, tick }) {
  const isMemory = /^[0-9a-f-]{32,36}$/i.test(by);
  return isMemory
    ? html`<a class="memory" href=${link({ view: "memory", of: by, run: index })}>another memory</a>`
    : html`<${AgentLink} name=${by} tick=${tick} run=${index} />`;
}

/** @param {{decisions: Life["decisions"], index: number, tick: number}} props */
function Decisions({ decisions, index, tick }) {
  return html`<div class="scroll"><table class="given" id="decisions"><thead><tr><th>tick</th><th>agent</th><th><${Word} text="part" /></th><th class="number"><${Word} text="score" /></th><th>did</th><th>what came of it</th></tr></thead>
    <tbody>${decisions.map(
      (each) => html`<tr class=${each.tick === tick ? "now" : ""}><td data-label="tick"><a href=${link({ view: "agent", of: each.agent, tick: each.tick, run: index })}>${each.tick}</a></td>
        <td><${AgentLink} name=${each.agent} tick=${each.tick} run=${index} /></td><td><${Word} text=${each.part} /></td><td class="number" data-label="score"><${Num} of=${each.score} /></td>
        <td data-label="did"><${Line} text=${each.did.map((/** @type {any} */ act) => act.name ?? asText(act)).join(", ")} most=${80} /></td>
        <td class="text"><${Line} text=${each.outcome.join(" · ")} most=${200} /></td></tr>`,
    )}</tbody></table></div>`;
}

/** The stretches of ticks in which a memory was there: an archived or deleted one may become active again.
 * @param {Life} life @param {number} last @returns {[number, number][]} */
function stretches({ memory, events }, last) {
  /** @type {[number, number][]} */
  const found = [];
  /** @type {number | null} */
  let since = memory.created;
  for (const { tick, what, retention } of events) {
    const isThere = what !== "gone" && (retention ?? "active") === "active";
    if (isThere) since ??= tick;
    else if (since !== null) {
      found.push([since, tick]);
      since = null;
    }
  }
  return since === null ? found : [...found, [since, last]];
}

/** @param {{life: Life, tick: number}} props */
function LifeLine({ life, tick }) {
  const [ref, { width }] = useSize();
  const { last } = span();
  const x = (/** @type {number} */ at) => shareOf(at) * width;
  /** @type {Map<number, number>} */
  const pile = new Map();
  const labelled = width / Math.max(1, new Set(life.events.map((event) => event.tick)).size) > 46;
  return html`<div class="life-line" ref=${ref}><svg width=${width} height="92" role="img" aria-label="the memory's life">
    <line class="axis" x1="0" x2=${width} y1="48" y2="48" />
    ${stretches(life, last).map(([from, until]) => html`<line class="alive" data-from=${from} data-until=${until} x1=${x(from)} x2=${x(until)} y1="48" y2="48" />`)}
    ${life.decisions.map((each) => html`<circle class="given-dot" cx=${x(each.tick)} cy="62" r="3"><title>${`tick ${each.tick}: given to ${plain(each.agent)} (${each.part})`}</title></circle>`)}
    ${life.events.filter((event) => event.what !== "given").map((event) => {
      const above = pile.get(event.tick) ?? 0;
      pile.set(event.tick, above + 1);
      const y = 48 - above * 13;
      return html`<g class="event" onClick=${() => moveTo(event.tick)}><circle class=${"event-dot " + event.what.replace(/\W/g, "-")} cx=${x(event.tick)} cy=${y} r="5"><title>${plain(`tick ${event.tick}: ${event.what} ${event.text ?? ""}`)}</title></circle>
        ${labelled && html`<text x=${x(event.tick) + (x(event.tick) > width - 80 ? -9 : 9)} y=${y - 6} text-anchor=${x(event.tick) > width - 80 ? "end" : "start"}>${event.what}</text>`}</g>`;
    })}
    <text class="legend" x="0" y="88">● given to an agent</text><text class="legend" x=${width} y="88" text-anchor="end">tick ${last}</text>
    <line class="cursor" x1=${x(tick)} x2=${x(tick)} y1="0" y2="76" />
  </svg></div>`;
}
