// The answers that an export carries; its lists are whole.
// docs/architecture/inspector.md describes the form.
import { order } from "#lists";
import { Refused } from "#refused";

/** @typedef {import("./types").Provider} Provider */

const PARAMETERS = /** @type {Record<string, string[]>} */ ({
  about: [], series: ["run"], heat: ["of", "run"], numbers: ["of", "run", "tick"], tick: ["run", "tick"], agent: ["agent", "run", "tick"],
  memories: ["agent", "run", "tick"], memory: ["id", "run"], population: ["run", "tick"], compare: ["agent", "tick"],
  effects: ["run"], costs: ["run"], deeds: ["run"],
  explain: ["agent", "run", "tick"], sweep: [],
});

/** @param {string} text base64 of gzip @returns {Promise<Provider>} */
export async function openEmbedded(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { nodes, answers } = JSON.parse(await new Response(plain).text());
  const value = reader(nodes);

  /** @param {string} name @param {Record<string, any>} params */
  function whole(name, params) {
    const given = PARAMETERS[name].map((each) => `${each}=${encodeURIComponent(params[each] ?? "")}`);
    const key = `${name}?${given.join("&")}`;
    if (!(key in answers)) throw new Refused("this is not in the exported file", "tiermem inspect RUN shows it");
    return value(answers[key]);
  }

  /** @type {Record<string, (params: Record<string, any>) => any>} */
  const made = {
    heat: (params) => agentsPage(whole("heat", params), params),
    branch: (params) => branch(value(answers["about?"]).runs[params.run], params),
    search: (params) => {
      const rows = search(answers, value, params);
      return { total: rows.length, rows };
    },
    explain: (params) => {
      const own = whole("explain", params);
      if (!params.query || params.query === own.query) {
        return { ...own, absent: own.total - own.rows.length };
      }
      throw new Refused("another query than the agent's own needs the server", "tiermem inspect RUN explains any query");
    },
  };
  return {
    embedded: true,
    get: async (name, params) => {
      if (name in made) return made[name](params);
      if (name in PARAMETERS) return whole(name, params);
      throw new Refused("this needs the server", "tiermem inspect RUN");
    },
    post: async () => {
      throw new Refused("an exported file can't run anything", "tiermem inspect RUN --allow-branch");
    },
  };
}

/** A function from a node's number to its value. Equal values are one object: nobody changes them.
 * @param {any[]} nodes */
function reader(nodes) {
  const made = new Array(nodes.length);
  /** @param {number} place @returns {any} */
  const value = (place) => {
    const node = nodes[place];
    if (node === null || typeof node !== "object") return node;
    made[place] ??= Array.isArray(node)
      ? node.map(value)
      : Object.fromEntries(Object.entries(node).map(([name, each]) => [name, value(each)]));
    return made[place];
  };
  return value;
}

/** @param {any} heat @param {Record<string, any>} params */
function agentsPage(heat, { offset = 0, limit = heat.agents.length }) {
  const cut = (/** @type {any[]} */ list) => list.slice(offset, offset + limit);
  return { ...heat, total: heat.agents.length, agents: cut(heat.agents), values: cut(heat.values) };
}

/** What holds all words: agents, then memories, then what agents asked and did; one word may be the id of a memory.
 * @param {Record<string, number>} answers @param {(place: number) => any} value @param {Record<string, any>} params */
function search(answers, value, { run, q, of }) {
  const words = String(q).toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const holds = (/** @type {string} */ text) => words.every((word) => text.toLowerCase().includes(word));
  const isOf = (/** @type {string} */ part) => !of || of === part;
  const about = value(answers["about?"]).runs[run];
  const named = (/** @type {string} */ what, /** @type {string[]} */ names) =>
    names.filter((name) => isOf("agents") && holds(name)).map((name) => ({ what, agent: name, tick: null, memory_id: null, text: name }));
  const memories = [];
  for (const [key, place] of isOf("memories") ? Object.entries(answers) : []) {
    if (!key.startsWith("memory?") || !key.endsWith(`&run=${run}`)) continue;
    const { agent, created, id, text, kind } = value(place).memory;
    if (holds(text) || (words.length === 1 && words[0] === id)) {
      memories.push({ what: kind, agent, tick: created, memory_id: id, text });
    }
  }
  memories.sort((one, other) => order(one.tick, other.tick));
  const deeds = isOf("decisions") ? value(answers[`deeds?run=${run}`]).rows : [];
  return [
    ...named("agent", about.agents),
    ...named("board", about.boards),
    ...memories,
    ...deeds.filter((/** @type {any} */ deed) => holds(deed.text)),
  ];
}

/** The command, with the path that was given to tiermem inspect. @param {import("./types").RunAbout} run @param {Record<string, any>} params */
function branch({ path, branches = "" }, { tick, edits, options, out: named }) {
  const list = JSON.parse(edits);
  const out = named ? `${branches.slice(0, branches.lastIndexOf("/") + 1)}${named}` : `${branches}${tick}`;
  const chosen = JSON.parse(options).map((/** @type {string[]} */ [option, value]) => (value ? ` --${option} ${quoted(value)}` : ` --${option}`));
  const name = `${out.slice(out.lastIndexOf("/") + 1)}-edits.yaml`;
  const edited = list.length ? ` --edit ${quoted(name)}` : "";
  return {
    command: `tiermem branch ${quoted(path ?? "")} --at ${tick} --out ${quoted(out)}${edited}${chosen.join("")}`,
    edits_file: list.map((/** @type {any} */ edit) => `- ${JSON.stringify(edit)}\n`).join(""),
    edits_name: name,
    out,
  };
}

/** @param {string} text as one word for a shell */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
