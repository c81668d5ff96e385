// The frame of all views: names, tabs, search, the tick cursor, and what is wrong with a run.
import { html, useEffect, useErrorBoundary, useReducer, useRef, useState } from "#vendor/htm-preact";
import { OF_AGENTS, current, go, link, useAddress } from "#address";
import { site } from "#answers";
import { Failed, isBoard, ofView } from "#bits";
import { CursorBar } from "#cursor";
import { leaveArms } from "#effects";
import { Glossary } from "#glossary";
import { KEYS, onKey } from "#keys";
import { useOpened } from "#opened";
import { readers } from "#provider";
import { Line, Name, counted, plain } from "#text";
import { followRuns, tickNow } from "#time";
import { VIEWS } from "#views";
import { AgentChoice } from "#views/agent";
import { openRun } from "#views/sweep";

const SCHEMES = ["", "light", "dark"];

export function App() {
  const address = useAddress();
  const [isHelp, setHelp] = useState(false);
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  useEffect(() => {
    followRuns(() => redraw(null));
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") setHelp(false);
      onKey(event, () => setHelp((last) => !last));
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  const { isOpen, error } = useOpened(address);
  const { about } = site;
  const shown = VIEWS.filter((view) => view.isShown(about));
  const view = shown.find((each) => each.name === address.view) ?? shown[0];
  const run = about.runs[address.run] ?? about.runs[0];
  useEffect(() => {
    document.title = plain(`${view?.title ?? ""}${address.of ? " " + address.of : ""} · ${about.name} · TierMem`);
  }, [view, address.of]);
  return html`<div class="frame" data-view=${view?.name}>
    <header>
      <a class="brand" href=${link({ view: shown[0]?.name })} title=${`TierMem ${about.version}`}><span class="soft">TierMem</span> <b><${Line} text=${about.around ?? about.name} most=${80} /></b></a>
      ${about.sweep && about.kind !== "sweep" && !about.around && html`<button class="quiet" id="to-sweep" onClick=${() => openRun("")}>‹ <${Line} text=${about.sweep} /></button>`}
      ${about.around && html`<button class="quiet" id="to-run" onClick=${leaveArms} title="back to the run itself">‹ back</button>`}
      <nav aria-label="views">${shown.map((each) => html`<${Tab} view=${each} isHere=${each === view} />`)}</nav>
      ${about.runs.length > 1 && html`<${RunChoice} />`}
      <span class="grow"></span>
      ${about.runs.length > 0 && html`<${SearchBox} />`}
      <${SchemeButton} />
      <button class="quiet" id="help" title="keys and words (?)" aria-label="keys and words" onClick=${() => setHelp(true)}>?</button>
    </header>
    ${run && html`<${CursorBar} />`}
    <${Remarks} />
    <main key=${`${address.cell} ${address.effect} ${view?.name}`}>${error
      ? html`<${Failed} error=${error} />`
      : isOpen
        ? html`<${Guard} view=${view} address=${address} run=${run} />`
        : html`<p class="soft waiting">Opening …</p>`}</main>
    ${isHelp && html`<${Help} close=${() => setHelp(false)} />`}
  </div>`;
}

/** A view that fails says so, and the frame stays. @param {{view: any, address: any, run: any}} props */
function Guard({ view, address, run }) {
  const [error, forget] = useErrorBoundary((found) => console.error(found));
  useEffect(() => (error ? forget() : undefined), [address.view, address.of, address.tick]);
  if (error) return html`<${Failed} error=${error} />`;
  if (!view) return html`<p class="soft">There is nothing to see here.</p>`;
  if (isStranger(view.name, address.of, run)) return html`<${Stranger} name=${address.of} view=${view.name} run=${run} />`;
  return html`<${view.view} address=${address} run=${run} index=${address.run} tick=${run ? tickNow() : 0} />`;
}

/** Whether an address names an agent that the run does not have. Boards are known only when the journal is read.
 * @param {string} view @param {string} name @param {any} run */
function isStranger(view, name, run) {
  if (!run || !name || isBoard(name) || !OF_AGENTS.includes(view)) return false;
  return !(view === "compare" ? site.about.runs : [run]).some((each) => each.agents.includes(name));
}

/** @param {{name: string, view: string, run: any}} props */
function Stranger({ name, view, run }) {
  return html`<div class="view-head"><${AgentChoice} run=${run} agent=${run.agents[0]} view=${view} /></div>
    <${Failed} error=${{ message: `${run.name} has no agent ${name}`, hint: "choose another one above" }} />`;
}

/** @param {{view: any, isHere: boolean}} props */
function Tab({ view, isHere }) {
  return html`<a href=${link({ view: view.name, of: ofView(view.name) })} data-tab=${view.name} aria-current=${isHere ? "page" : undefined}>${view.title}</a>`;
}

function RunChoice() {
  const { runs } = site.about;
  return html`<span class="runs" role="group" aria-label="run">${runs.map(
    (run, index) => html`<button class=${"run-" + index} aria-pressed=${current().run === index} onClick=${() => go({ run: index })}><${Name} text=${run.name} /></button>`,
  )}</span>`;
}

function SearchBox() {
  const find = (/** @type {any} */ event) => {
    event.preventDefault();
    const q = event.currentTarget.elements.q.value.trim();
    if (q) go({ view: "search", of: "", more: { q } });
  };
  return html`<form class="search" role="search" onSubmit=${find}>
    <input id="search" name="q" type="search" placeholder="Search  /" aria-label="search" value=${current().view === "search" ? (current().more.q ?? "") : ""} />
  </form>`;
}

function SchemeButton() {
  const [scheme, setScheme] = useState(() => stored() ?? "");
  useEffect(() => {
    if (scheme) document.documentElement.dataset.scheme = scheme;
    else delete document.documentElement.dataset.scheme;
    try {
      localStorage.setItem("scheme", scheme);
    } catch {
      // The browser keeps nothing for this page: the choice lasts until it is closed.
    }
    dispatchEvent(new Event("scheme"));
  }, [scheme]);
  const next = SCHEMES[(SCHEMES.indexOf(scheme) + 1) % SCHEMES.length];
  return html`<button class="quiet" id="scheme" title="light, dark, or as the system has it" onClick=${() => setScheme(next)}>${scheme || "auto"}</button>`;
}

function stored() {
  try {
    return localStorage.getItem("scheme");
  } catch {
    return null;
  }
}

/** What a reader must know before the numbers: damage, and how far the journal is read. */
function Remarks() {
  const [reading, setReading] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const reader = (/** @type {any} */ news) => setReading(news);
    readers.add(reader);
    return () => void readers.delete(reader);
  }, []);
  const { runs } = site.about;
  return html`<div class="remarks">
    ${runs.map((run) => run.damaged && html`<p class="damaged" role="alert"><b><${Line} text=${run.name} /> is damaged.</b> <${Line} text=${run.damaged} most=${600} />${run.ticks && `. This file has what is whole, up to tick ${run.last_tick}.`}</p>`)}
    ${runs.map((run) => run.ticks && run.ticks.length <= run.last_tick - run.first_tick && html`<p class="soft">This file has ${counted(run.ticks.length, "tick")} of ${run.last_tick - run.first_tick + 1} of <${Line} text=${run.name} />; the cursor stands at these.</p>`)}
    ${reading && html`<p class="soft reading">reading the journal: ${reading.done} of ${reading.of} ticks</p>`}
  </div>`;
}

/** @param {{close: () => void}} props */
function Help({ close }) {
  const dialog = useRef(/** @type {any} */ (null));
  useEffect(() => dialog.current.focus(), []); // keys scroll what has the focus
  return html`<div class="veil" onClick=${close}><dialog open class="help" aria-label="keys and words" tabindex="-1" ref=${dialog} onClick=${(/** @type {any} */ event) => event.stopPropagation()}>
    <button class="quiet close" aria-label="close" title="close (Esc)" onClick=${close}>×</button>
    <h2>Keys</h2>
    <table>${KEYS.map(([keys, does]) => html`<tr><th>${keys}</th><td>${does}</td></tr>`)}</table>
    <p class="soft">The address of the page has view, agent and tick: a copy of it leads here again. TierMem ${site.about.version}</p>
    <${Glossary} />
  </dialog></div>`;
}
