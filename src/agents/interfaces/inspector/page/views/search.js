// Any word, over all agents, ticks, memories and decisions.
import { html, useState } from "#vendor/htm-preact";
import { filter, link } from "#address";
import { AgentLink, MemoryLink, useTyped } from "#bits";
import { LongTable } from "#table";
import { Line, counted } from "#text";

/** A memory leads to its life, what an agent asked or did to the decision. @param {{row: any, run: number}} props */
function Found({ row, run }) {
  if (row.tick === null) return html`<${AgentLink} name=${row.agent} run=${run} />`;
  if (row.memory_id) return html`<${MemoryLink} id=${row.memory_id} text=${row.text} run=${run} />`;
  return html`<a class="memory" href=${link({ view: "agent", of: row.agent, tick: row.tick, run })} title="the decision"><${Line} text=${row.text} /></a>`;
}

/** @param {{address: any, index: number}} props */
export function SearchView({ address, index }) {
  const { q = "", in: of = "" } = address.more;
  const typed = useTyped(q, (text) => filter({ q: text }), 250);
  const [count, setCount] = useState("");
  const columns = [
    { name: "tick", title: "tick", class: "number c-tick", cell: (/** @type {any} */ row) => row.tick },
    { name: "agent", title: "agent", class: "c-agent", cell: (/** @type {any} */ row) => html`<${AgentLink} name=${row.agent} tick=${row.tick ?? undefined} run=${index} />` },
    { name: "what", title: "what", class: "c-what", cell: (/** @type {any} */ row) => row.what },
    { name: "text", title: "text", class: "c-text", cell: (/** @type {any} */ row) => html`<${Found} row=${row} run=${index} />` },
  ];
  return html`<div class="search-view">
    <div class="filters"><input id="words" type="search" placeholder="words, an agent, an id" aria-label="words" ...${typed} autofocus />
      <select id="search-in" aria-label="where" value=${of} onChange=${(/** @type {any} */ event) => filter({ in: event.currentTarget.value })}>
        <option value="">everywhere</option><option value="memories">in memories</option><option value="decisions">in what agents asked and did</option></select>
      <span class="soft" id="found">${q && count}</span></div>
    ${q
      ? html`<${LongTable} id="results" ask="search" params=${{ run: index, q, of }} columns=${columns} empty="nothing has these words"
          onTotal=${(/** @type {number} */ total, /** @type {boolean} */ more) => setCount(counted(total, "result") + (more ? ", and there are more" : ""))} />`
      : html`<p class="soft">Words are looked for in all memories of all agents, also in those that are gone by now, and in what agents asked and did.</p>`}
  </div>`;
}
