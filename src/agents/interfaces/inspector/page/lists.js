// Lists are whole in the page, which filters, sorts and cuts them: those of a server and those of an exported file.

const TIERS = ["pinned", "critical", "important", "normal", "low"];
const TEMPERATURES = ["hot", "warm", "cold"];

/** The field of an answer that has its list. @type {Record<string, string>} */
export const LISTS = { memories: "rows", explain: "rows", search: "rows", tick: "events" };

/** What the page does itself with a list, and what is asked for. @param {Record<string, any>} params */
export function parted({ tier, temperature, text, sort, offset, limit, ...asked }) {
  return { asked, how: { tier, temperature, text, sort, offset, limit } };
}

/** The rows of a list that are to be shown, and how many there are. @param {string} name @param {any} whole @param {Record<string, any>} how */
export function shown(name, whole, { offset = 0, limit = Infinity, ...how }) {
  const rows = arranged(whole[LISTS[name]], how);
  return { ...whole, total: rows.length, [LISTS[name]]: rows.slice(offset, offset + limit) };
}

/** @param {any[]} rows @param {Record<string, any>} how */
function arranged(rows, { tier, temperature, text, sort }) {
  const words = String(text ?? "").toLowerCase();
  const found = rows.filter(
    (row) =>
      (!tier || row.tier === tier) &&
      (!temperature || row.temperature === temperature) &&
      (!words || row.text.toLowerCase().includes(words)),
  );
  if (!sort) return found;
  const name = sort.replace(/^-/, "");
  found.sort((one, other) => order(rank(name, one[name]), rank(name, other[name])));
  return sort.startsWith("-") ? found.reverse() : found;
}

/** @param {string} name @param {any} value */
function rank(name, value) {
  if (name === "tier") return TIERS.indexOf(value);
  return name === "temperature" ? TEMPERATURES.indexOf(value) : (value ?? -Infinity);
}

/** @param {any} one @param {any} other */
export const order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
