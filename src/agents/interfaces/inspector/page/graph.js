// Who told whom, as a circle of agents or in their society; and the overlap of their memories, as a matrix.
import { html, useEffect, useRef, useState } from "#vendor/htm-preact";
import { go } from "#address";
import { useScheme, useSize } from "#bits";
import { shareIn } from "#heat";
import { amount, amountColour } from "#palette";
import { Line, number, plain } from "#text";

/** @typedef {import("./types").Edge} Edge */
/** @typedef {import("./types").Numbers} Numbers */
/** @typedef {import("./types").Society} Society */

const SHOWN = 80; // agents in the circle: those that told and heard most

/** @param {string[]} agents @param {Edge[]} edges */
function busiest(agents, edges) {
  /** @type {Map<string, number>} */
  const counts = new Map(agents.map((agent) => [agent, 0]));
  for (const { teller, listener, times } of edges) {
    for (const agent of [teller, listener]) counts.set(agent, (counts.get(agent) ?? 0) + times);
  }
  const all = [...counts.keys()];
  if (all.length <= SHOWN) return { names: all, total: all.length };
  const kept = new Set(all.sort((one, other) => (counts.get(other) ?? 0) - (counts.get(one) ?? 0)).slice(0, SHOWN));
  return { names: [...counts.keys()].filter((agent) => kept.has(agent)), total: all.length };
}

/** @param {{x: number, y: number, angle: number}} place */
function labelAt({ x, y, angle }) {
  const [side, upright] = [Math.cos(angle), Math.sin(angle)];
  if (Math.abs(side) < 0.12) return { x, y: y + (upright < 0 ? -11 : 20), anchor: "middle" };
  return side > 0 ? { x: x + 10, y: y + 4, anchor: "start" } : { x: x - 10, y: y + 4, anchor: "end" };
}

/** @param {string} name of an agent */
const open = (name) => go({ view: "agent", of: name, more: {} });

/** The number of an agent; null if nothing is known. @param {Numbers} numbers @param {string} agent */
export const numberOf = (numbers, agent) => numbers.values[numbers.agents.indexOf(agent)] ?? null;

/** Agents keep their places while the cursor moves: ``edges`` are drawn, ``all`` says who is in the circle. Agents have the
 * colours of ``numbers``, and a ring if they are among the ``holders``; without numbers, holders have a colour.
 * @param {{edges: Edge[], all: Edge[], agents: string[], society: Society | null, holders: Set<string> | null, numbers: Numbers | null, tick: number, chosen: string, choose: (agent: string) => void}} props */
export function Circle({ edges, all, agents, society, holders, numbers, tick, chosen, choose }) {
  const [ref, { width, height }] = useSize();
  const { names, total } = society ? { names: society.agents, total: society.agents.length } : busiest(agents, all);
  const room = 84;
  const across = Math.max(40, Math.min(width / 2 - room, height / 2 - 30));
  const down = Math.max(40, Math.min(height / 2 - 30, 1.35 * across));
  const [cx, cy] = [width / 2, height / 2];
  const wide = Math.max(40, width / 2 - 40);
  const high = Math.max(40, height / 2 - 24);
  const at = new Map(
    names.map((name, index) => {
      if (society) {
        const [x, y] = society.places[index];
        return [name, { x: cx + (2 * x - 1) * wide, y: cy + (2 * y - 1) * high, angle: Math.PI / 2 }];
      }
      const angle = (index / names.length) * 2 * Math.PI - Math.PI / 2;
      return [name, { x: cx + across * Math.cos(angle), y: cy + down * Math.sin(angle), angle }];
    }),
  );
  const most = Math.max(1, ...edges.map((edge) => edge.times));
  const values = new Map(numbers?.agents.map((name, place) => [name, numbers.values[place]]));
  const drawn = edges.filter((edge) => at.has(edge.teller) && at.has(edge.listener));
  return html`<div class="circle" ref=${ref}><svg width=${width} height=${height} role="group" aria-label="who told whom">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="13" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
    ${(society?.ties ?? []).map(([one, other]) => {
      const [a, b] = [at.get(names[one]), at.get(names[other])];
      return a && b && html`<path class="tie" d=${`M${a.x} ${a.y}L${b.x} ${b.y}`} />`;
    })}
    ${drawn.map((edge) => {
      const [a, b] = [at.get(edge.teller), at.get(edge.listener)];
      if (!a || !b) return null;
      const isChosen = edge.teller === chosen || edge.listener === chosen;
      const isFaint = chosen ? !isChosen : numbers && !holders && edge.last_tick !== tick; // colours come first
      const kind = isFaint ? "faint" : edge.last_tick === tick ? "new" : chosen ? "chosen" : "";
      const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
      // In a circle threads bend to its middle; along the ties of a society a little to the side, so that two ways are two.
      const [mx, my] = society ? [x + (b.y - a.y) * 0.12, y - (b.x - a.x) * 0.12] : [x + (cx - x) * 0.45, y + (cy - y) * 0.45];
      return html`<path class=${"thread " + kind} d=${`M${a.x} ${a.y}Q${mx} ${my} ${b.x} ${b.y}`} stroke-width=${0.5 + 2 * (edge.times / most)} marker-end="url(#arrow)">
        <title>${`${plain(edge.teller)} told ${plain(edge.listener)}: ${edge.times} times from tick ${edge.first_tick} to ${edge.last_tick}, ${edge.new} times something new`}</title></path>`;
    })}
    ${names.map((name) => {
      const place = at.get(name);
      if (!place) return null;
      const value = values.get(name) ?? null;
      const holds = holders ? (holders.has(name) ? "holds" : "lacks") : "";
      const kind = `${holds} ${numbers ? (value === null ? "numbered unknown" : "numbered") : ""} ${name === chosen ? "chosen" : ""}`;
      const fill = numbers && value !== null ? { fill: amountColour(shareIn(value, numbers.low ?? 0, numbers.high ?? 0)) } : {};
      const said = plain(name) + (numbers ? `, ${plain(numbers.of)} ${number(value)} in tick ${numbers.tick}` : "") + (holds === "holds" ? ", holds the belief" : "");
      const label = labelAt(place);
      const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter") return;
        if (event.shiftKey) open(name);
        else choose(name === chosen ? "" : name);
      };
      return html`<g class=${"node " + kind} data-agent=${name} tabindex="0" role="button" aria-label=${said} aria-pressed=${name === chosen} onKeyDown=${onKeyDown} onClick=${() => choose(name === chosen ? "" : name)} onDblClick=${() => open(name)}>
        <circle cx=${place.x} cy=${place.y} r=${names.length > (numbers ? 150 : 40) ? 4 : 6} style=${fill}><title>${said}: click shows its threads, double click opens it</title></circle>
        ${(names.length <= (society ? 16 : 48) || (society && name === chosen)) && html`<text x=${label.x} y=${label.y} text-anchor=${label.anchor}>${plain(name.length > 12 ? name.slice(0, 11) + "…" : name)}</text>`}</g>`;
    })}
  </svg>${total > names.length && html`<p class="soft">the ${names.length} of ${total} agents that told and heard most</p>`}</div>`;
}

/** @param {{agents: string[], overlap: (number | null)[][]}} props */
export function Matrix({ agents, overlap }) {
  const [ref, { width, height }] = useSize();
  const canvas = useRef(null);
  const scheme = useScheme();
  const [over, setOver] = useState(/** @type {any} */ (null));
  const count = agents.length;
  const most = Math.max(0, ...overlap.flatMap((row, y) => row.map((value, x) => (x === y ? 0 : (value ?? 0)))));
  const side = Math.max(0, Math.min(width - 96, height - 8, count * 26));
  useEffect(() => {
    if (side <= 0 || !count) return;
    const scale = devicePixelRatio || 1;
    canvas.current.width = canvas.current.height = Math.round(side * scale);
    const context = canvas.current.getContext("2d");
    const cell = canvas.current.width / count;
    overlap.forEach((row, y) =>
      row.forEach((value, x) => {
        if (value === null || x === y) return;
        context.fillStyle = `rgb(${amount(most ? value / most : 0).join(" ")})`;
        context.fillRect(Math.round(x * cell), Math.round(y * cell), Math.ceil(cell - (cell > 6 ? 1 : 0)), Math.ceil(cell - (cell > 6 ? 1 : 0)));
      }),
    );
  }, [agents, overlap, side, scheme]);
  const row = side / Math.max(1, count);
  const find = (/** @type {any} */ event) => {
    const x = Math.min(count - 1, Math.floor(event.offsetX / row));
    const y = Math.min(count - 1, Math.floor(event.offsetY / row));
    setOver(x === y ? null : { one: agents[y], other: agents[x], value: overlap[y]?.[x] });
  };
  const percent = (/** @type {number | null} */ value) => number(value === null ? null : Math.round(value * 1000) / 10);
  return html`<div class="matrix" ref=${ref}>
    <div class="heat-names">${row >= 9 && agents.map((name) => html`<span style=${{ height: `${row}px`, lineHeight: `${row}px` }}><${Line} text=${name} /></span>`)}</div>
    <canvas ref=${canvas} id="overlap" data-first=${agents[0]} data-agents=${count} role="img" aria-label="share of texts that two agents both hold" style=${{ width: `${side}px`, height: `${side}px` }} onPointerMove=${find} onPointerLeave=${() => setOver(null)}></canvas>
    <p class="soft matrix-note">${over ? html`<b><${Line} text=${over.one} /></b> and <b><${Line} text=${over.other} /></b> share ${percent(over.value)} %` : `dark: nothing in common; yellow: ${percent(most)} %`}</p>
  </div>`;
}
