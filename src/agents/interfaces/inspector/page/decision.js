// One decision of an agent: what it observed, asked, was given and did, and what came of it.
import { html } from "#vendor/htm-preact";
import { MemoryLink, Tier } from "#bits";
import { Word } from "#glossary";
import { Block, Line, Num, asText, number } from "#text";

/** @typedef {import("./types").Decision} Decision */
/** @typedef {import("./types").Given} Given */

/** @param {{title: string, children?: any, name: string}} props */
const Part = ({ title, children, name }) => html`<div class="part" data-part=${name}><h3>${title}</h3><div>${children}</div></div>`;

/** @param {{texts: any[]}} props */
const Texts = ({ texts }) => html`<ul class="texts">${texts.map((text) => html`<li><${Block} text=${text} /></li>`)}</ul>`;

/** What the agent was given, in its order. @param {{rows: Given[], run?: number}} props */
export function GivenTable({ rows, run }) {
  return html`<table class="given"><thead><tr><th class="number"><${Word} text="score" /></th><th class="number"><${Word} text="+ boost" /></th><th><${Word} text="part" /></th><th><${Word} text="tier" /></th><th>memory</th></tr></thead>
    <tbody>${rows.map(
      (row) => html`<tr data-id=${row.id}><td class="number" data-label="score"><${Num} of=${row.score} /></td><td class="number" data-label="+ boost"><${Num} of=${row.boost} /></td>
        <td><${Word} text=${row.part ?? row.reason ?? ""} /></td><td><${Tier} name=${row.tier} /></td>
        <td class="text"><${MemoryLink} id=${row.id} text=${row.text} run=${run} />${row.part && row.reason && html`<small class="reason"><${Line} text=${row.reason} most=${300} /></small>`}</td></tr>`,
    )}</tbody></table>`;
}

/** @param {{act: any, run?: number}} props */
function Act({ act, run }) {
  const given = Object.entries(act.arguments ?? {});
  return html`<li class="act"><b><${Line} text=${act.name} /></b>
    ${given.map(([name, value]) => html` <span class="argument"><span class="soft"><${Line} text=${name} /></span> <${Line} text=${asText(value)} most=${120} /></span>`)}
    ${act.result !== null && act.result !== undefined && html` <span class="result">→ <${Line} text=${asText(act.result)} /></span>`}
    ${act.reason && html`<div class="soft">because: <${Line} text=${act.reason} most=${300} /></div>`}
    ${act.text && html`<div><${MemoryLink} id=${act.memory_id} text=${act.text} run=${run} /></div>`}</li>`;
}

/** @param {{decision: Decision, run?: number}} props */
export function DecisionParts({ decision, run }) {
  const { note, persona, observed, heard, errors, facts, query, given, reasons, asked, did, idle, told, saved, insights, calls } = decision;
  const left = Object.entries(reasons ?? {});
  const hasFacts = facts && Object.keys(facts).length > 0;
  return html`<div class="decision" data-tick=${decision.tick} data-agent=${decision.agent}>
    ${note && html`<p class="remark"><${Line} text=${note} /></p>`}
    ${persona && html`<${Part} name="persona" title="Persona"><${Block} text=${persona} /><//>`}
    ${observed && html`<${Part} name="observed" title="Observed"><${Block} text=${observed} /><//>`}
    ${heard?.length > 0 && html`<${Part} name="heard" title="Heard"><${Texts} texts=${heard} /><//>`}
    ${errors?.length > 0 && html`<${Part} name="errors" title="Was told"><${Texts} texts=${errors} /><//>`}
    ${hasFacts && html`<${Part} name="facts" title="Facts"><p class="facts">${Object.entries(facts).map(
      ([name, value]) => html`<span class="argument"><span class="soft"><${Line} text=${name} /></span> <${Line} text=${asText(value)} most=${120} /></span> `,
    )}</p><//>`}
    ${query && query !== observed && html`<${Part} name="query" title="Query"><${Block} text=${query} /><//>`}
    ${given && (given.length > 0 || observed) && html`<${Part} name="given" title=${`Given (${given.length})`}>
      ${given.length > 0 ? html`<${GivenTable} rows=${given} run=${run} />` : html`<p class="soft">no memory</p>`}
      ${left.length > 0 && html`<p class="soft">not given: ${left.map(([reason, count], at) => html`${at > 0 && ", "}${number(count)} <${Word} text=${reason} />`)}</p>`}<//>`}
    ${asked?.length > 0 && html`<${Part} name="asked" title="Asked">${asked.map(
      (ask) => html`<div class="ask"><p><${Line} text=${ask.query} />${ask.cold ? html` <span class="soft">cold, too</span>` : ""}</p>
        ${ask.note && html`<p class="soft">${ask.note}</p>`}
        ${ask.found?.length > 0 ? html`<${GivenTable} rows=${ask.found} run=${run} />` : html`<p class="soft">found nothing</p>`}</div>`,
    )}<//>`}
    ${did?.length > 0 && html`<${Part} name="did" title="Did"><ul class="acts">${did.map((act) => html`<${Act} act=${act} run=${run} />`)}</ul><//>`}
    ${idle && html`<${Part} name="idle" title="Did nothing"><div class="soft">because: <${Line} text=${idle} most=${300} /></div><//>`}
    ${told?.length > 0 && html`<${Part} name="told" title="Others told it"><${Texts} texts=${told} /><//>`}
    ${saved?.length > 0 && html`<${Part} name="saved" title="Saved"><${Texts} texts=${saved} /><//>`}
    ${insights?.length > 0 && html`<${Part} name="insights" title="Concluded"><${Texts} texts=${insights} /><//>`}
    ${calls?.length > 0 && html`<${Part} name="calls" title="Asked its model"><${Texts} texts=${calls} /><//>`}
  </div>`;
}
