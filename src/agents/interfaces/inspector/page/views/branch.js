// What if? Change an agent's memories after a tick, and get the command that runs on from there.
import { html, useState } from "#vendor/htm-preact";
import { go, link } from "#address";
import { forget, site, useAnswer } from "#answers";
import { Copy, Failed, Panel, missing } from "#bits";
import { Line, marked, plain } from "#text";
import { moveTo } from "#time";
import { AgentChoice } from "#views/agent";

/** @typedef {import("../types").Edit} Edit */
/** @typedef {import("../types").Option} Option */

const TIERS = ["pinned", "critical", "important", "normal", "low"];

/** The options of `tiermem branch` that are not chosen elsewhere in this view: what each needs, and what it does.
 * @type {Record<string, [string, string]>} */
const OPTIONS = {
  set: ["KEY=VALUE", "a setting from this tick on, such as memory.max_pinned=3"],
  forget: ["AGENT:ID", "a memory that is forgotten, pinned or not: AGENT:ID, or AGENT:part of its text"],
  "never-heard": ["AGENT:ID", "a memory of a later tick that never comes into being: AGENT:ID, or AGENT:part of its text"],
  block: ["FROM→TO", "what FROM says no longer reaches TO"],
  pin: ["AGENT:ID", "a memory that is pinned: AGENT:ID, or AGENT:part of its text"],
  call: ["MODULE:FUNCTION", "a function that changes the run's own program, where one makes the ticks"],
  ticks: ["TICKS", "the length of the run, from its start"],
  out: ["FOLDER", "the name of the new run's folder, which lies beside this run"],
  "make-only": ["", "the new run is made, and not run: tiermem resume runs it later"],
};
const ONCE = ["ticks", "out", "make-only"]; // a second one takes the place of the first

/** @param {{address: any, run: any, index: number, tick: number}} props */
export function BranchView({ address, run, index, tick }) {
  const agent = address.of || run.agents[0];
  const [all, setAll] = useState(/** @type {Record<string, Edit[]>} */ ({})); // by run and tick
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const [options, setOptions] = useState(/** @type {Option[]} */ ([]));
  const here = `${index} ${tick}`;
  const edits = all[here] ?? [];
  const setEdits = (/** @type {(last: Edit[]) => Edit[]} */ change) => setAll((last) => ({ ...last, [here]: change(last[here] ?? []) }));
  const add = (/** @type {Edit[]} */ more, /** @type {string} */ text) => {
    const { memory } = more[0];
    moveTo(tick); // The edits are for this tick: a page that follows a run would leave it.
    setEdits((last) => [...last.filter((each) => !memory || each.memory !== memory), ...more]);
    if (memory) setTexts((last) => ({ ...last, [memory]: text }));
  };
  return html`<div class="branch">
    <div class="view-head"><h1>What if, after tick ${tick}?</h1> <${AgentChoice} run=${run} agent=${agent} view="branch" />
      <span class="soft">Both runs are the same up to tick ${tick}. What follows is run anew, with the changes.</span></div>
    <div class="columns">
      <${Choose} agent=${agent} index=${index} tick=${tick} add=${add} edits=${edits} />
      <div class="column">
        <${Edits} edits=${edits} texts=${texts} remove=${(/** @type {number} */ at) => setEdits((last) => withoutEdit(last, at))} elsewhere=${elsewhere(all, index, tick)} />
        <${Options} options=${options} set=${setOptions} />
        <${Command} index=${index} agent=${agent} tick=${tick} edits=${edits} options=${options} />
      </div>
    </div>
  </div>`;
}

/** The other ticks of a run that have edits. @param {Record<string, Edit[]>} all @param {number} index @param {number} tick */
const elsewhere = (all, index, tick) =>
  Object.keys(all).filter((key) => all[key].length > 0 && key.startsWith(`${index} `)).map((key) => Number(key.split(" ")[1]))
    .filter((each) => each !== tick).sort((one, other) => one - other);

/** The edits without one; those of the same memory go with it. @param {Edit[]} edits @param {number} at */
const withoutEdit = (edits, at) =>
  edits.filter((edit, place) => place !== at && (!edit.memory || edit.memory !== edits[at].memory));

/** @param {{agent: string, index: number, tick: number, edits: Edit[], add: (edits: Edit[], text: string) => void}} props */
function Choose({ agent, index, tick, edits, add }) {
  const [text, setText] = useState("");
  const answer = useAnswer("memories", { run: index, agent, tick, text, sort: "tier", limit: 200, offset: 0 });
  const [content, setContent] = useState("");
  const [tier, setTier] = useState("normal");
  const { data } = answer;
  const touched = new Set(edits.map((edit) => edit.memory));
  const store = (/** @type {any} */ event) => {
    event.preventDefault();
    if (!content.trim()) return;
    add([{ agent, do: "add", content: content.trim(), tier }], content);
    setContent("");
  };
  return html`<${Panel} title=${`Memories of ${plain(agent)}`} class="choose">
    <form class="filters" onSubmit=${store}>
      <input id="new-memory" class="wide" placeholder="a memory to add" aria-label="a memory to add" value=${content} onInput=${(/** @type {any} */ event) => setContent(event.currentTarget.value)} />
      <select aria-label="tier of the new memory" value=${tier} onChange=${(/** @type {any} */ event) => setTier(event.currentTarget.value)}>${TIERS.map((name) => html`<option value=${name}>${name}</option>`)}</select>
      <button id="add-memory">Add</button>
    </form>
    <div class="filters"><input type="search" placeholder="show memories with this text" aria-label="text" value=${text} onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} /></div>
    ${data
      ? html`<ul class="editable">${data.rows.map(
          (/** @type {any} */ row) => html`<li class=${touched.has(row.id) ? "touched" : ""} data-id=${row.id}>
            <select aria-label="tier" value=${row.tier} onChange=${(/** @type {any} */ event) => add(tierEdit(agent, row, event.currentTarget.value), row.text)}>
              ${TIERS.map((name) => html`<option value=${name} selected=${name === row.tier}>${name}</option>`)}</select>
            <button class="delete" title="forget it" onClick=${() => add(deletion(agent, row), row.text)}>delete</button>
            <a class="memory" href=${link({ view: "memory", of: row.id })}><${Line} text=${row.text} /></a></li>`,
        )}</ul>${data.total > data.rows.length && html`<p class="soft">the first ${data.rows.length} of ${data.total}</p>`}`
      : missing(answer)}
  <//>`;
}

/** @param {string} agent @param {any} row @param {string} tier @returns {Edit[]} */
function tierEdit(agent, { id: memory }, tier) {
  return [tier === "pinned" ? { agent, do: "pin", memory } : { agent, do: "set_tier", memory, tier }];
}

/** A pinned memory is unpinned first: nothing else ends a pin. @param {string} agent @param {any} row @returns {Edit[]} */
function deletion(agent, { id: memory, tier }) {
  const forget = { agent, do: "delete", memory };
  return tier === "pinned" ? [{ agent, do: "unpin", memory }, forget] : [forget];
}

/** @param {{edits: Edit[], texts: Record<string, string>, remove: (at: number) => void, elsewhere: number[]}} props */
function Edits({ edits, texts, remove, elsewhere }) {
  return html`<${Panel} title="Changes">
    ${edits.length > 0
      ? html`<ol class="edits" id="edits">${edits.map(
          (edit, at) => html`<li><b>${edit.do}${edit.tier ? ` ${edit.tier}` : ""}</b> <span class="soft"><${Line} text=${edit.agent} /></span> <${Line} text=${edit.content ?? texts[edit.memory ?? ""] ?? edit.memory} />
            <button class="quiet" aria-label="take back" title="take back" onClick=${() => remove(at)}>×</button></li>`,
        )}</ol>`
      : html`<p class="soft">None yet. Add a memory, choose another tier, or delete one. Without a change the new run is the same run.</p>`}
    ${elsewhere.length > 0 && html`<p class="soft" id="elsewhere">The changes after ${elsewhere.map(
      (tick, at) => html`${at > 0 && ", "}<button class="tick-link" onClick=${() => moveTo(tick)}>tick ${tick}</button>`,
    )} are kept there: a branch begins at one tick.</p>`}
  <//>`;
}

/** @param {{options: Option[], set: (change: (last: Option[]) => Option[]) => void}} props */
function Options({ options, set }) {
  const [name, setName] = useState("set");
  const [value, setValue] = useState("");
  const [needs, does] = OPTIONS[name];
  const add = (/** @type {any} */ event) => {
    event.preventDefault();
    if (needs && !value.trim()) return;
    set((last) => [...last.filter((each) => each.name !== name || !ONCE.includes(name)), { name, value: needs && value.trim() }]);
    setValue("");
  };
  return html`<${Panel} title="Options">
    <form class="filters" onSubmit=${add}>
      <select id="option" aria-label="option" aria-describedby="option-does" value=${name} onChange=${(/** @type {any} */ event) => setName(event.currentTarget.value)}>
        ${Object.keys(OPTIONS).map((each) => html`<option value=${each} selected=${each === name}>--${each}</option>`)}</select>
      ${needs && html`<input id="option-value" class="wide" placeholder=${needs} aria-label=${needs} value=${value} onInput=${(/** @type {any} */ event) => setValue(event.currentTarget.value)} />`}
      <button id="add-option">Add</button>
    </form>
    <p class="soft" id="option-does">${does}</p>
    ${options.length > 0 && html`<ol class="edits" id="options">${options.map(
      (each, at) => html`<li><b>--${each.name}</b> <${Line} text=${each.value} />
        <button class="quiet" aria-label="take back" title="take back" onClick=${() => set((last) => last.filter((_, place) => place !== at))}>×</button></li>`,
    )}</ol>`}
  <//>`;
}

/** @param {{index: number, agent: string, tick: number, edits: Edit[], options: Option[]}} props */
function Command({ index, agent, tick, edits, options }) {
  const out = options.find((each) => each.name === "out")?.value ?? "";
  const pairs = options.filter((each) => each.name !== "out").map((each) => [each.name, each.value]);
  const params = { run: index, agent, tick, edits: JSON.stringify(edits), options: JSON.stringify(pairs), out };
  const answer = useAnswer("branch", params);
  const { data } = answer;
  return html`<${Panel} title="The command">
    ${data
      ? html`<pre id="command">${marked(data.command)}</pre><${Copy} text=${data.command} label="Copy the command" />
        ${site.provider.embedded && html`<p class="soft" id="command-note">The paths are those of tiermem inspect --export${isRelative(index) ? ": give the command in the folder in which the file was made" : ""}.</p>`}
        ${data.edits_file && html`<h3><${Line} text=${data.edits_name} /></h3><pre id="edits-file">${marked(data.edits_file)}</pre><${Copy} text=${data.edits_file} label="Copy the file" />`}
        ${site.about.allow_branch && html`<${RunIt} body=${{ run: index, agent, tick, edits, options: pairs, out }} />`}`
      : missing(answer)}
  <//>`;
}

/** Whether the path of a run in an exported file says where it is only from the folder of the export. @param {number} index */
const isRelative = (index) => !site.about.runs[index]?.path?.startsWith("/");

/** @param {{body: any}} props */
function RunIt({ body }) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  const start = async () => {
    setState({ isRunning: true });
    try {
      await site.provider.post("branch", body);
      Object.assign(site.about, await site.provider.get("about", {}));
      forget();
      go({ view: "compare", of: body.agent, run: 0, tick: body.tick, more: {} });
    } catch (error) {
      setState({ error });
    }
  };
  return html`<p><button id="run-branch" disabled=${state.isRunning} onClick=${start}>${state.isRunning ? "Running …" : "Run it and compare"}</button></p>
    ${state.error && html`<${Failed} error=${state.error} />`}`;
}
