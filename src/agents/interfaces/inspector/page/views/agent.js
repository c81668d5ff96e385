// An agent at a tick: its decision, its context, its memories, and why a memory was not given.
import { html, useMemo, useState } from "#vendor/htm-preact";
import { filter, go, link } from "#address";
import { site, useAnswer } from "#answers";
import { AskIt } from "#ask";
import { MemoryLink, PageChoice, Panel, Temperature, Tier, isBoard, missing, shownName, useTyped } from "#bits";
import { DecisionParts } from "#decision";
import { Word } from "#glossary";
import { LongTable } from "#table";
import { Block, Num, counted, plain } from "#text";

const TIERS = ["pinned", "critical", "important", "normal", "low"];
const TEMPERATURES = ["hot", "warm", "cold"];
const EXPLAINED = 200; // memories on a page of "why not?"

/** @param {{run: any, agent: string, view: string, boards?: string[]}} props */
export function AgentChoice({ run, agent, view, boards = [] }) {
  const { agents } = run;
  const options = useMemo(() => agents.map((/** @type {string} */ name) => html`<option value=${name}>${plain(name)}</option>`), [agents]);
  const step = (/** @type {number} */ by) => go({ view, of: agents[(agents.indexOf(agent) + by + agents.length) % agents.length] });
  return html`<span class="agent-choice">
    <button title="the agent before ([)" aria-label="the agent before" onClick=${() => step(-1)}>‹</button>
    <select id="agent" aria-label="agent" value=${agent} onChange=${(/** @type {any} */ event) => go({ view, of: event.currentTarget.value })}>
      ${options}
      ${boards.length > 0 && html`<optgroup label="boards">${boards.map((name) => html`<option value=${name}>${plain(shownName(name))}</option>`)}</optgroup>`}
    </select>
    <button title="the next agent (])" aria-label="the next agent" onClick=${() => step(1)}>›</button>
  </span>`;
}

/** @param {{address: any, run: any, index: number, tick: number}} props */
export function AgentView({ address, run, index, tick }) {
  const agent = address.of || run.agents[0];
  const isBank = site.about.kind === "bank";
  const isOfBoard = Boolean(agent) && isBoard(agent);
  const isAlone = isBank || isOfBoard;
  const isWhyNot = address.more.tab === "why-not" && !isOfBoard;
  if (!agent) return html`<p class="soft">There is no agent yet.</p>`;
  return html`<div class="agent-view">
    <div class="view-head"><${AgentChoice} run=${run} agent=${agent} view="agent" boards=${run.boards} /> <h1>in tick ${tick}</h1>
      <span class="grow"></span>
      ${site.about.runs.length > 1 && !isOfBoard && html`<a href=${link({ view: "compare", of: agent })}>compare</a>`}
      ${isOfBoard ? html`<span class="soft" id="board-note">what the members of the group wrote: a board decides nothing</span>` : isBank ? html`<span class="soft">no run made this bank: it keeps no decisions</span>` : html`<a id="branch-here" href=${link({ view: "branch", of: agent })}>branch from here</a>`}</div>
    <div class=${isAlone ? "columns alone" : "columns"}>
      ${!isAlone && html`<${Decided} agent=${agent} index=${index} tick=${tick} />`}
      <div class="column">
        ${site.about.allow_ask && !isAlone && html`<${AskIt} agent=${agent} index=${index} tick=${tick} />`}
        <div class="tabs" role="tablist">
          <button role="tab" id="tab-memories" aria-selected=${!isWhyNot} onClick=${() => filter({ tab: "" })}>Memories after tick ${tick}</button>
          ${!isOfBoard && html`<button role="tab" id="tab-why-not" aria-selected=${isWhyNot} onClick=${() => filter({ tab: "why-not" })}>Why not?</button>`}
        </div>
        ${isWhyNot
          ? html`<${WhyNot} address=${address} agent=${agent} index=${index} tick=${tick} />`
          : html`<${Memories} address=${address} agent=${agent} index=${index} tick=${tick} />`}
      </div>
    </div>
  </div>`;
}

/** Whether the agent decided anything: nobody does in the first tick.
 * @param {import("../types").Decision} told */
const isDecision = (told) => Boolean(told.query || told.observed || told.given.length || told.did.length);

/** @param {{agent: string, index: number, tick: number}} props */
function Decided({ agent, index, tick }) {
  const answer = useAnswer("agent", { run: index, agent, tick });
  const { data } = answer;
  return html`<${Panel} class="decided" title="The decision">
    ${data ? html`<${DecisionParts} decision=${data} run=${index} />` : missing(answer)}
    ${data?.context && isDecision(data) && html`<details class="context" id="context" open><summary>The context, exactly as the agent read it</summary><${Block} text=${data.context} mono=${true} /></details>`}
  <//>`;
}

/** @param {{address: any, agent: string, index: number, tick: number}} props */
function Memories({ address, agent, index, tick }) {
  const { tier = "", temperature = "", text = "", sort = "-created" } = address.more;
  const typed = useTyped(text, (value) => filter({ text: value }));
  const [total, setTotal] = useState(/** @type {number | null} */ (null));
  const choose = (/** @type {string} */ name) => (/** @type {any} */ event) => filter({ [name]: event.currentTarget.value });
  const columns = [
    { name: "created", title: "born", class: "number c-tick", sort: "created", cell: (/** @type {any} */ row) => row.created },
    { name: "tier", title: "tier", class: "c-tier", sort: "tier", cell: (/** @type {any} */ row) => html`<${Tier} name=${row.tier} />` },
    { name: "temperature", title: "temp.", class: "c-temperature", sort: "temperature", cell: (/** @type {any} */ row) => html`<${Temperature} name=${row.temperature} />` },
    { name: "uses", title: "uses", class: "number c-tick c-uses", sort: "uses", cell: (/** @type {any} */ row) => html`<${Num} of=${row.uses} />` },
    { name: "text", title: "memory", class: "c-text", sort: "text", cell: (/** @type {any} */ row) => html`<${MemoryLink} id=${row.id} text=${row.text} run=${index} />` },
  ];
  return html`<div class="memories">
    <div class="filters">
      <select id="by-tier" aria-label="tier" value=${tier} onChange=${choose("tier")}><option value="">every tier</option>${TIERS.map((name) => html`<option value=${name}>${name}</option>`)}</select>
      <select id="by-temperature" aria-label="temperature" value=${temperature} onChange=${choose("temperature")}><option value="">every temperature</option>${TEMPERATURES.map((name) => html`<option value=${name}>${name}</option>`)}</select>
      <input id="by-text" type="search" placeholder="text" aria-label="text" ...${typed} />
      <span class="soft" id="total">${total !== null && counted(total, "memory", "memories")}</span>
    </div>
    <${LongTable} id="memories" ask="memories" params=${{ run: index, agent, tick, tier, temperature, text, sort }} columns=${columns} sort=${sort}
      onSort=${(/** @type {string} */ next) => filter({ sort: next })} onTotal=${setTotal} empty="no memory" />
  </div>`;
}

/** @param {{address: any, agent: string, index: number, tick: number}} props */
function WhyNot({ address, agent, index, tick }) {
  const { query = "", with: text = "", when = site.about.kind === "bank" ? "after" : "deciding" } = address.more;
  const typed = useTyped(text, (value) => filter({ with: value }));
  const about = JSON.stringify([index, agent, tick, query, when, text]);
  const [page, setPage] = useState({ about, offset: 0 });
  const offset = page.about === about ? page.offset : 0;
  const answer = useAnswer("explain", query || when === "deciding" ? { run: index, agent, tick, query, when, text, offset, limit: EXPLAINED } : null);
  const { data } = answer;
  const find = (/** @type {any} */ event) => {
    event.preventDefault();
    filter({ query: event.currentTarget.elements.query.value, when });
  };
  return html`<div class="why-not">
    <form class="filters" onSubmit=${find}>
      <input id="why-not" name="query" type="search" placeholder=${data?.query ?? "a query"} aria-label="query" value=${query} />
      <button id="explain">Explain</button>
      ${!site.provider.embedded && html`<select aria-label="moment" value=${when} onChange=${(/** @type {any} */ event) => filter({ when: event.currentTarget.value })}>
        <option value="deciding">when it decided</option><option value="after">after the tick</option></select>`}
    </form>
    <p class="soft">${query ? "What the agent would be given for this query" : "What the agent was given for its own query"}, and why each other memory was not.</p>
    ${data && html`<div class="filters"><input id="explained-with" type="search" placeholder="only memories with this text" aria-label="only memories with this text" ...${typed} />
      <span class="soft" id="explained-total">${counted(data.total, "memory", "memories")}${data.absent > 0 && `; the file leaves out ${data.absent} that were not given`}</span>
      <${PageChoice} what="memories" id="explained-from" total=${data.total} size=${EXPLAINED} offset=${offset} set=${(/** @type {number} */ from) => setPage({ about, offset: from })} /></div>`}
    ${data ? html`<${Explained} rows=${data.rows} index=${index} />` : (query || when === "deciding") && missing(answer)}
  </div>`;
}

/** @param {{rows: any[], index: number}} props */
function Explained({ rows, index }) {
  return html`<div class="scroll"><table class="given" id="explained"><thead><tr><th class="number"><${Word} text="rank" /></th><th class="number"><${Word} text="score" /></th><th class="number"><${Word} text="+ boost" /></th>
    <th class="number"><${Word} text="= total" /></th><th><${Word} text="tier" /></th><th>memory, and why</th></tr></thead>
    <tbody>${rows.map(
      (row) => html`<tr class=${row.rank ? "is-given" : "is-not"} data-id=${row.id}><td class="number" data-label="rank">${row.rank || "–"}</td><td class="number" data-label="score"><${Num} of=${row.score} /></td>
        <td class="number" data-label="+ boost"><${Num} of=${row.boost} /></td><td class="number" data-label="= total"><${Num} of=${row.total} /></td><td><${Tier} name=${row.tier} /></td>
        <td class="text"><${MemoryLink} id=${row.id} text=${row.text} run=${index} /><small class="reason"><${Word} text=${row.reason} /></small></td></tr>`,
    )}</tbody></table></div>`;
}
