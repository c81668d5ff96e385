// The shape of each answer; docs/architecture/inspector.md says how the page asks for them.
export type RunAbout = {
  name: string; agents: string[]; boards: string[]; first_tick: number; last_tick: number; head?: number; is_finished: boolean;
  metrics: string[]; per_agent: string[]; has_decisions?: boolean; has_calls?: boolean; damaged: string | null; ticks?: number[]; path?: string; branches?: string;
};
export type About = {
  kind: "run" | "bank" | "sweep"; name: string; runs: RunAbout[]; allow_branch: boolean; allow_ask?: boolean; version: string; sweep?: string | null; around?: string | null; cell?: string; effect?: string;
};
type Column = (number | null)[];
export type Series = {
  ticks: number[]; metrics: Record<string, Column>; tiers: Record<string, Column>; temperatures: Record<string, Column>;
};
type Spent = { calls: number; read: number; cached: number; written: number; cost: number | null; seconds: number; median_seconds: number };
export type Costs = {
  ticks: number[]; tokens: Record<string, number[]>; calls: number[]; seconds: number[]; cost: Column; all: Spent; estimated: boolean; usable: number;
  by: Record<string, (Spent & { name: string })[]>; agents: number; problems: { why: string; times: number; agent: string; tick: number }[];
};
export type Heat = { of: string; agents: string[]; total: number; ticks: number[]; width: number; values: Column[] };
/** A number of each agent after a tick; low and high are the range that it has in all ticks. */
export type Numbers = { of: string; tick: number; low: number | null; high: number | null; agents: string[]; values: Column };
export type TickEvent = { agent: string; what: string; text: string; memory_id: string | null; detail: string };
export type Tick = {
  tick: number; counts: Record<string, number>; metrics: Record<string, number>; total: number; events: TickEvent[]; more: any;
};
export type MemoryRow = { id: string; text: string; tier: string; temperature: string; created: number; [name: string]: any };
export type Given = {
  id: string; text: string; score: number | null; boost: number | null; total?: number | null; part?: string; tier: string;
  temperature?: string; reason?: string; rank?: number | null; created_tick?: number; kind?: string; speaker?: string | null;
};
export type Decision = {
  agent: string; tick: number; note: string | null; persona?: string; observed: any; heard: string[]; errors: string[]; facts: any;
  query: string | null; given: Given[]; reasons: Record<string, number>;
  asked: { query: string; limit: number | null; cold: boolean; found: Given[]; note: string | null }[];
  did: { name: string; arguments: any; result: any; memory_id: string | null; text: string | null; reason?: string | null }[];
  outcome: string[]; told: string[]; saved: string[]; insights: string[]; exchanges: any[]; calls: string[]; context: string | null;
  /** Why it did nothing, if its policy says so. */
  idle?: string | null;
};
export type Explained = { query: string | null; when: string; tick: number; total: number; rows: Given[]; reasons?: Record<string, number> };
export type Life = {
  memory: { id: string; agent: string; text: string; tier: string; kind: string; created: number; [name: string]: any };
  events: {
    tick: number; what: string; text: string; by: string | null; tier: string | null; temperature: string | null;
    retention: string | null; expires: number | null;
  }[];
  decisions: { tick: number; agent: string; part: string; place: number; score: number | null; did: any[]; outcome: string[] }[];
  source: { teller: string; tick: number; memory_id: string; origin_agent: string; origin_id: string; hands: number } | null;
  /** Why there are no decisions to show; empty if some were kept. */
  no_decisions: string;
  note: string | null;
};
export type Told = { teller: string; listener: string; memory_id: string; tick: number; text: string };
export type Edge = { teller: string; listener: string; times: number; new: number; first_tick: number; last_tick: number };
export type Holder = {
  tick: number; agent: string; memory_id: string; teller: string | null; parent_id: string | null; hands: number; gone: number | null;
};
export type Belief = {
  origin: string; agent: string; tick: number; text: string; by: "source" | "text"; holders: number; now: number; tells: number;
  r: number; depth: number; half_life: number; first: Holder[];
};
export type Population = {
  tick: number; edges: Edge[]; edges_total: number; told: Told[]; told_total: number; beliefs: Belief[]; agents: string[];
  total: number; overlap: Column[]; society: Society | null;
};
export type Society = { agents: string[]; places: [number, number][]; ties: [number, number][] };
export type Compared = {
  first_difference: { tick: number; agent: string | null; what: string } | null;
  left: Decision | null; right: Decision | null; only_left: MemoryRow[]; only_right: MemoryRow[]; only_left_total: number; only_right_total: number;
};
export type Beside = { total: number; runs: { name: string; command: string }[] };
export type Effect = {
  name: string; at: number | null; until: number; changed: string[]; reached: [string, number][]; has_runs: boolean;
  statistics: { metric: string; n: number; mean: number; low: number | null; high: number | null; interval: string; placebo?: string; verdict?: string }[];
};
export type Edit = { agent: string; do: string; memory?: string; content?: string; tier?: string };
export type Option = { name: string; value: string };
export type Branch = { command: string; edits_file: string; edits_name: string; out: string };
export type Found = { what: string; agent: string; tick: number; memory_id: string | null; text: string };
export type Point = {
  values: Record<string, any>; seeds: any[]; metrics: Record<string, number | null>;
  runs: { seed: number; name: string; metrics: Record<string, number | null>; has_run: boolean }[];
};
export type Sweep = { name: string; question: string | null; is_finished: boolean; parameters: string[]; metrics: string[]; points: Point[] };
export type Provider = {
  embedded: boolean;
  get(name: string, params: Record<string, any>): Promise<any>;
  post(name: string, body: any): Promise<any>;
};
export type Address = { view: string; of: string; agent: string; run: number; tick: number | null; cell: string; effect: string; more: Record<string, string> };
