// The words of the page, in one place: a word's title says what it means, and the page's help lists all of them.
import { html } from "#vendor/htm-preact";
import { plain } from "#text";

/** Each word as the page shows it, and what it means. The names of a world's own numbers are the world's. @type {Record<string, Record<string, string>>} */
export const GLOSSARY = {
  "A memory": {
    tier: "how much a memory matters: pinned, critical, important, normal or low",
    pinned: "the first tier: always given, before all others, and always hot",
    critical: "the second tier: a large boost in a search",
    important: "the third tier: a boost in a search",
    normal: "the tier of a memory for which nobody named one",
    low: "the last tier: a search ranks it behind equally similar memories",
    temperature: "how active a memory is: hot, warm or cold",
    hot: "put in front of the agent in each turn, without a search, within a budget of tokens",
    warm: "searched in each turn",
    cold: "searched only when the agent asks for cold memories, too",
    retention: "whether a memory is visible: active, archived (by its id alone) or deleted",
    archived: "no longer searched or given; its id still leads to it",
    expired: "its lifetime has ended: it is deleted, and can be restored for a while",
    born: "the tick in which the memory was stored",
    "in tier since": "the tick in which it entered its tier; when a tier is full, the oldest in it moves down",
    uses: "a use is a search or a recall that gave the memory with a score of at least temperature.min_score, or a promotion; to be given because it is pinned or hot is no use",
    "last used": "the tick of its last use",
    relevance: "what decides which memory leaves hot first: 0.5 for one that was never used, and nearer to 1 with each use; a search does not look at it",
    expires: "the tick in which its lifetime ends",
  },
  "A decision": {
    given: "the memories that the agent got for its decision, in their order",
    part: "why it was given: pinned, hot, or chosen by the search",
    chosen: "the search gave it: it had one of the best totals",
    score: "how well the memory answers the query, by meaning and by words: from 0 to 1",
    boost: "what the memory's tier adds to its score",
    total: "score and boost together: a search gives the memories with the largest",
    rank: "the place among the memories that were given",
    candidates: "the memories with the best scores, some for each place that the search has (memory.candidate_multiplier); only these get their boost and are ranked",
    "below the cut": "it was a candidate, and others had a larger total",
    "over the token budget": "it was good enough, and too long for the room that was left",
    "over the limits of hot": "it is hot, and hot memories before it filled the room for them",
    filtered: "the search asked for others: for a tag, a kind, a time, or a better score",
    superseded: "a later version of it was stored",
  },
  "A language model": {
    "tokens read": "the tokens of the prompts, cached ones included",
    cached: "the tokens of the prompts that the model had read before: it keeps the beginnings of prompts",
    "read anew": "the tokens of the prompts that the model had not read before",
    written: "the tokens of the answers",
    usable: "an answer in the form that was asked for",
    "median seconds": "half of the answers took at most this long",
    cost: "by llm.prices; a model that has no price there has no cost",
  },
  "Counts of a tick": {
    added: "memories that were stored",
    demoted: "memories that moved to a lower tier to make room",
    moved: "memories that moved to another tier because somebody asked for it",
    deleted: "memories that were deleted; they can be restored for a while",
    restored: "memories that became active again",
    purged: "memories that are gone for good",
    promoted: "memories that became hot",
    spilled: "memories that left hot because hot was full",
    cooled: "memories that became warm or cold",
    recalled: "cold memories that a recall brought back",
    retrieved: "memories that all agents together were given",
    "retrieved most": "memories that the agent with most was given",
    "hot utilization": "the share of the tokens for hot memories that is taken, for the agent with the largest share: from 0 to 1",
    "hit rate": "the share of the agents to whom a memory was given with a score of at least temperature.min_score: from 0 to 1",
    errors: "actions that were refused or failed; their agents are told",
    "no ops": "decisions for which the language model had no answer: the agent did nothing",
    flushes: "agents who saved what matters before their context was cut",
    "flush failures": "agents who were to save what matters, and did not",
    reflections: "agents who reflected on their memories",
    insights: "memories that reflections made",
  },
  "Agents × ticks": {
    memories: "active memories that the agent has after the tick",
    "pinned or critical": "the share of the agent's active memories that are pinned or critical: from 0 to 1",
    retrievals: "memories that the agent was given in the tick",
    actions: "actions of the agent in the tick",
    refusals: "actions of the agent that were refused in the tick",
  },
  "The population": {
    belief: "a memory with all that was told on from it; or memories of several agents with the same text",
    telling: "one agent told another one a memory",
    R: "those who were told, for each one who could tell",
    hands: "how many times it was told on, from agent to agent",
  },
};

/** @type {Record<string, string>} */
const WORDS = Object.assign({}, ...Object.values(GLOSSARY));
const BY_LENGTH = Object.keys(WORDS).sort((one, other) => other.length - one.length);

/** What a text means: it is a word, or has one in it, such as “outside the 9 candidates”. @param {string} text */
export function meaningOf(text) {
  const shown = text.replaceAll("_", " ");
  const found = shown in WORDS ? shown : BY_LENGTH.find((word) => ` ${shown} `.includes(` ${word} `));
  return found === undefined ? undefined : WORDS[found];
}

/** A word with its meaning, for whoever points at it. @param {{text: string, title?: string}} props */
export function Word({ text, title = meaningOf(text) }) {
  return html`<span class=${title ? "word" : ""} title=${title}>${plain(text)}</span>`;
}

/** All words, for the page's help. */
export function Glossary() {
  return html`<div class="glossary" id="glossary"><h2>Words</h2>
    ${Object.entries(GLOSSARY).map(([about, words]) => html`<h3>${about}</h3>
      <dl>${Object.entries(words).map(([word, meaning]) => html`<div><dt>${word}</dt><dd>${meaning}</dd></div>`)}</dl>`)}
    <p class="soft">Other names of numbers are those of the run's world.</p></div>`;
}
