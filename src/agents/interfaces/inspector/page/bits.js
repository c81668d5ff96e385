// Small pieces that several views use.
import { html, useEffect, useLayoutEffect, useReducer, useRef, useState } from "#vendor/htm-preact";
import { OF_AGENTS, current, link } from "#address";
import { site } from "#answers";
import { meaningOf } from "#glossary";
import { Line } from "#text";

/** @param {{name: string}} props */
export const Tier = ({ name }) => html`<span class=${"tier " + name} title=${meaningOf(name)}>${name}</span>`;

/** @param {{name: string}} props */
export const Temperature = ({ name }) => html`<span class=${"temperature " + name} title=${meaningOf(name)}>${name}</span>`;

/** @type {WeakMap<string[], Set<string>>} */
const known = new WeakMap();

/** Whether memories belong to this name: those who tell something need not be agents. @param {string} name @param {number} run */
function isOwner(name, run) {
  const { agents = [], boards = [] } = site.about.runs[run] ?? {};
  const names = known.get(agents) ?? new Set(agents);
  known.set(agents, names);
  return names.has(name) || boards.includes(name);
}

/** Whether memories with this name are on the board of a group: no agent's begins with a dot. @param {string} name */
export const isBoard = (name) => name.startsWith(".");

/** What the address of a view names, for whoever comes from another view: the agent that was looked at last.
 * @param {string} view */
export function ofView(view) {
  const { agent, run } = current();
  const isThere = isBoard(agent) ? view === "agent" : isOwner(agent, run);
  return isThere && OF_AGENTS.includes(view) ? agent : "";
}

/** The name of an agent or a board, for people. @param {string} name */
export const shownName = (name) => (isBoard(name) ? `board of ${name.slice(1)}` : name);

/** @param {{name: string, tick?: number, run?: number}} props */
export function AgentLink({ name, tick, run }) {
  const text = shownName(name);
  if (!isOwner(name, run ?? current().run)) return html`<span class="agent"><${Line} text=${text} /></span>`;
  const place = { ...(tick === undefined ? {} : { tick }), ...(run === undefined ? {} : { run }) };
  return html`<a class="agent" href=${link({ view: "agent", of: name, ...place })}><${Line} text=${text} /></a>`;
}

/** @param {{id: string | null, text: any, run?: number}} props */
export function MemoryLink({ id, text, run }) {
  if (!id) return html`<${Line} text=${text} />`;
  const place = run === undefined ? {} : { run };
  return html`<a class="memory" href=${link({ view: "memory", of: id, ...place })} title="the memory's life"><${Line} text=${text} /></a>`;
}

/** @param {{error: any}} props */
export function Failed({ error }) {
  return html`<div class="failed" role="alert">
    <p><${Line} text=${error.message} /></p>
    ${error.hint && html`<p class="soft"><${Line} text=${error.hint} /></p>`}
  </div>`;
}

/** What stands in the place of an answer: an error, or that it is on its way; null when it is there.
 * @param {{data: any, error: any}} answer */
export function missing({ data, error }) {
  if (error) return html`<${Failed} error=${error} />`;
  return data === null ? html`<p class="soft waiting">…</p>` : null;
}

/** @param {{title: any, note?: any, children?: any, class?: string, id?: string}} props */
export function Panel(props) {
  return html`<section class=${"panel " + (props.class ?? "")} id=${props.id}>
    <h2>${props.title}${props.note && html`<span class="note">${props.note}</span>`}</h2>
    ${props.children}
  </section>`;
}

/** An element's size in pixels, and the ref that it needs. @returns {[any, {width: number, height: number}]} */
export function useSize() {
  const ref = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const look = () => {
      const { clientWidth: width, clientHeight: height } = ref.current;
      setSize((last) => (last.width === width && last.height === height ? last : { width, height }));
    };
    const observer = new ResizeObserver(look);
    observer.observe(ref.current);
    look();
    return () => observer.disconnect();
  }, []);
  return [ref, size];
}

/** A number that changes when the page becomes light or dark: what is drawn on a canvas is drawn anew. */
export function useScheme() {
  const [count, redraw] = useReducer((/** @type {number} */ last) => last + 1, 0);
  useEffect(() => {
    const listener = () => redraw(null);
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", listener);
    addEventListener("scheme", listener);
    return () => {
      media.removeEventListener("change", listener);
      removeEventListener("scheme", listener);
    };
  }, []);
  return count;
}

/** A text that follows what is typed, after a rest. @param {string} text @param {(text: string) => void} set */
export function useTyped(text, set, rest = 200) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return undefined;
    const timer = setTimeout(() => set(typed), rest);
    return () => clearTimeout(timer);
  }, [typed]);
  return { value: typed, onInput: (/** @type {any} */ event) => setTyped(event.currentTarget.value) };
}

/** A choice among the pages of a long list; nothing where one page has it all.
 * @param {{what: string, id: string, total: number, size: number, offset: number, set: (offset: number) => void}} props */
export function PageChoice({ what, id, total, size, offset, set }) {
  const pages = Math.ceil(total / size);
  if (pages < 2) return null;
  return html`<label>${what} <select id=${id} value=${offset} onChange=${(/** @type {any} */ event) => set(Number(event.currentTarget.value))}>
    ${[...Array(pages).keys()].map((page) => html`<option value=${page * size} selected=${page * size === offset}>${page * size + 1} to ${Math.min(total, (page + 1) * size)}</option>`)}
  </select> of ${total}</label>`;
}

/** @param {{text: string, label?: string}} props */
export function Copy({ text, label = "Copy" }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const field = document.createElement("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button class="copy" onClick=${copy}>${isDone ? "Copied" : label}</button>`;
}
