// The views, in the order of their tabs.
import { AgentView } from "#views/agent";
import { BranchView } from "#views/branch";
import { CompareView } from "#views/compare";
import { CostsView } from "#views/costs";
import { MemoryView } from "#views/memory";
import { OverviewView } from "#views/overview";
import { PopulationView } from "#views/population";
import { SearchView } from "#views/search";
import { SweepView } from "#views/sweep";

/** @typedef {import("./types").About} About */

const ofRuns = (/** @type {About} */ about) => about.runs.length > 0;

/** @type {{name: string, title: string, view: any, isShown: (about: About) => boolean}[]} */
export const VIEWS = [
  { name: "sweep", title: "Sweep", view: SweepView, isShown: (about) => about.kind === "sweep" },
  { name: "overview", title: "Overview", view: OverviewView, isShown: ofRuns },
  { name: "agent", title: "Agent", view: AgentView, isShown: ofRuns },
  { name: "memory", title: "Memory", view: MemoryView, isShown: ofRuns },
  { name: "population", title: "Population", view: PopulationView, isShown: ofRuns },
  { name: "compare", title: "Compare", view: CompareView, isShown: ofRuns },
  { name: "branch", title: "Branch", view: BranchView, isShown: (about) => ofRuns(about) && about.kind !== "bank" },
  { name: "search", title: "Search", view: SearchView, isShown: ofRuns },
  { name: "costs", title: "Costs", view: CostsView, isShown: (about) => about.runs.some((run) => run.has_calls) },
];
