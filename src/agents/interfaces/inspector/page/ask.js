// Ask an agent what it thinks, as it was after a tick: the run does not learn it.
import { html, useState } from "#vendor/htm-preact";
import { forgetOf, site } from "#answers";
import { Failed, Panel } from "#bits";
import { Line, plain } from "#text";

const KINDS = { text: "in words", number: "a number", scale: "1 to 7", choice: "one of …" };

/** @param {{agent: string, index: number, tick: number}} props */
export function AskIt({ agent, index, tick }) {
  const [question, setQuestion] = useState("");
  const [kind, setKind] = useState("text");
  const [choice, setChoice] = useState("");
  const [state, setState] = useState(/** @type {any} */ ({}));
  const ask = async (/** @type {any} */ event) => {
    event.preventDefault();
    if (!question.trim() || state.isAsking) return;
    setState({ isAsking: true });
    try {
      const told = await site.provider.post("ask", { run: index, agent, tick, question, kind, choice });
      forgetOf("costs");
      setState({ told, question, agent, tick });
    } catch (error) {
      setState({ error });
    }
  };
  const typed = (/** @type {(value: string) => void} */ set) => (/** @type {any} */ event) => set(event.currentTarget.value);
  return html`<${Panel} class="ask" title=${`Ask ${plain(agent)}`} note=${`as it was after tick ${tick}; the run does not learn it`}>
    <form class="filters" onSubmit=${ask}>
      <input id="question" class="wide" placeholder="a question" aria-label="a question" value=${question} onInput=${typed(setQuestion)} />
      <select id="answer-kind" aria-label="kind of answer" value=${kind} onChange=${typed(setKind)}>${Object.entries(KINDS).map(([name, words]) => html`<option value=${name}>${words}</option>`)}</select>
      ${kind === "choice" && html`<input id="choice" placeholder="yes, no" aria-label="the choices, with commas between them" value=${choice} onInput=${typed(setChoice)} />`}
      <button id="ask" disabled=${state.isAsking}>${state.isAsking ? "Asking …" : "Ask"}</button>
    </form>
    ${state.error && html`<${Failed} error=${state.error} />`}
    ${state.told && html`<p class="facts" id="answer"><span class="soft">${plain(state.agent)} after tick ${state.tick}: <${Line} text=${state.question} /></span></p>
      <p><${Line} text=${state.told.answer ?? state.told.problem} most=${2000} /></p>
      <p class="soft small" id="answer-cost">${plain(state.told.cost)}</p>`}
  <//>`;
}
