// Any word, over all agents, ticks and memories.
import { html, useState } from "#vendor/htm-preact";
import { filter } from "#address";
import { AgentLink, MemoryLink, useTyped } from "#bits";
import { LongTable } from "#table";
import { counted } from "#text";

/** @param {{address: any, index: number}} props */
export function SearchView({ address, index }) {
  const { q = "" } = address.more;
  const typed = useTyped(q, (text) => filter({ q: text }), 250);
  const [total, setTotal] = useState(/** @type {number | null} */ (null));
  const columns = [
    { name: "tick", title: "tick", class: "number c-tick", cell: (/** @type {any} */ row) => row.tick },
    { name: "agent", title: "agent", class: "c-agent", cell: (/** @type {any} */ row) => html`<${AgentLink} name=${row.agent} tick=${row.tick} run=${index} />` },
    { name: "what", title: "what", class: "c-what", cell: (/** @type {any} */ row) => row.what },
    { name: "text", title: "text", class: "c-text", cell: (/** @type {any} */ row) => html`<${MemoryLink} id=${row.memory_id} text=${row.text} run=${index} />` },
  ];
  return html`<div class="search-view">
    <div class="filters"><input id="words" type="search" placeholder="words, an agent, an id" aria-label="words" ...${typed} autofocus />
      <span class="soft" id="found">${q && total !== null && `${counted(total, "result")}${total >= 1000 ? " or more" : ""}`}</span></div>
    ${q
      ? html`<${LongTable} id="results" ask="search" params=${{ run: index, q }} columns=${columns} onTotal=${setTotal} empty="nothing has these words" />`
      : html`<p class="soft">Words are looked for in all memories of all agents, also in those that are gone by now.</p>`}
  </div>`;
}
