// Texts of memories are data. Characters that hide, reorder or control text are shown as marks.
import { html, useState } from "#vendor/htm-preact";

/** @type {Record<number, string>} */
const NAMES = {
  0x00ad: "SHY", 0x061c: "ALM", 0x180e: "MVS", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LSEP", 0x2029: "PSEP",
  0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ",
  0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
/** Controls, what no font draws (but for joiners and variations, which belong to letters and emoji), and halves of characters. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\ufffb]|(?![\u200c\u200d\ufe00-\ufe0f])\p{Default_Ignorable_Code_Point}|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;
const LINE = 240; // characters of a text in one line of a table
const BLOCK = 4000; // characters of a text that is shown whole, before one asks for more

/** @param {string} character */
function named(character) {
  const code = /** @type {number} */ (character.codePointAt(0));
  const hex = "U+" + code.toString(16).toUpperCase().padStart(4, "0");
  return { hex, name: NAMES[code] ?? hex };
}

/** @param {string} character */
function mark(character) {
  const { hex, name } = named(character);
  return html`<span class="mark" title=${hex}>${name}</span>`;
}

/** The text with the names of hidden characters, where only text can be: in titles, options and drawings.
 * @param {string} text */
export const plain = (text) => text.replace(HIDDEN, (character) => `‹${named(character).name}›`);

/** The text with visible marks, as strings and elements. @param {string} text */
export function marked(text) {
  const pieces = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) pieces.push(text.slice(from, found.index));
    pieces.push(mark(found[0]));
    from = found.index + found[0].length;
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}

/** A text in one line: cut, with ↵ for its line breaks. @param {{text: any, most?: number}} props */
export function Line({ text, most = LINE }) {
  const whole = asText(text);
  const cut = whole.length > most ? whole.slice(0, most) + "…" : whole;
  return html`<bdi class="line">${marked(cut.replace(/\r?\n/g, "↵").replace(/\t/g, "⇥"))}</bdi>`;
}

const TAIL = 9; // characters of a name that are never cut: "-branch-5" tells a branch from its run

/** A name that is cut in its middle where there is no room: names of related runs begin alike. @param {{text: string}} props */
export function Name({ text }) {
  const letters = [...text];
  return html`<bdi class="name-cut" title=${plain(text)}>${letters.length > TAIL && html`<span class="front">${marked(letters.slice(0, -TAIL).join(""))}</span>`}<span class="tail">${marked(letters.slice(-TAIL).join(""))}</span></bdi>`;
}

/** A text with its line breaks. A long one shows its beginning first. @param {{text: any, mono?: boolean}} props */
export function Block({ text, mono = false }) {
  const [isWhole, setWhole] = useState(false);
  const whole = asText(text);
  const isCut = whole.length > BLOCK && !isWhole;
  return html`<div class=${mono ? "block mono" : "block"}>
    <bdi>${marked(isCut ? whole.slice(0, BLOCK) : whole)}</bdi>
    ${isCut &&
    html`<button class="quiet" onClick=${() => setWhole(true)}>… show all ${whole.length.toLocaleString("en")} characters</button>`}
  </div>`;
}

/** @param {any} value */
export function asText(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

const counts = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const shares = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** @param {any} value */
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return asText(value);
  return Number.isInteger(value) ? counts.format(value) : shares.format(value);
}

/** A number that is shown short, and kept exactly for whoever reads the page. @param {{of: any}} props */
export function Num({ of }) {
  return html`<span class="num" data-value=${JSON.stringify(of ?? null)}>${number(of)}</span>`;
}

/** @param {number} count @param {string} one @param {string} many */
export function counted(count, one, many = one + "s") {
  return `${counts.format(count)} ${count === 1 ? one : many}`;
}
