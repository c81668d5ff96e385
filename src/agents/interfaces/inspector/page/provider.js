// Where the answers come from: the server of `tiermem inspect`, or the file that --export wrote.
import { site } from "#answers";
import { openEmbedded } from "#embedded";
import { Refused } from "#refused";

/** @typedef {import("./types").Provider} Provider */

const PLACE = ["cell", "effect"]; // these are sent where they are empty, too
const ASK_AGAIN = [30, 60, 120, 300]; // milliseconds, when the server has not read far enough

/** @type {Set<(reading: {done: number, of: number} | null) => void>} */
export const readers = new Set();

/** @returns {Promise<Provider>} */
export async function connect() {
  const embedded = document.getElementById("inspector-data");
  return embedded ? openEmbedded(embedded.textContent ?? "") : server();
}

/** What this page looks at; another page of the server may look at another run of the sweep. */
function here() {
  const { cell, effect } = site.about ?? {};
  return cell === undefined ? {} : { cell, effect };
}

/** @returns {Provider} */
function server() {
  return {
    embedded: false,
    get: async (name, params) => {
      const query = new URLSearchParams();
      for (const [key, value] of Object.entries({ ...here(), ...params })) {
        if (value !== undefined && value !== null && (value !== "" || PLACE.includes(key))) query.set(key, String(value));
      }
      return answered(() => fetch(`api/${name}?${query}`));
    },
    post: (name, body) =>
      answered(() =>
        fetch(`api/${name}`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ ...here(), ...body }),
        }),
      ),
  };
}

/** @param {() => Promise<Response>} request */
async function answered(request) {
  for (let times = 0; ; times += 1) {
    let response;
    try {
      response = await request();
    } catch {
      throw new Refused("the server does not answer", "is tiermem inspect still running?");
    }
    const body = await response.json().catch(() => null);
    const isReading = response.status === 202;
    for (const reader of readers) reader(isReading ? body?.reading : null);
    if (!isReading) {
      if (response.ok && body !== null) return body;
      throw new Refused(body?.error?.message ?? `the server answered ${response.status}`, body?.error?.hint ?? "");
    }
    await new Promise((done) => setTimeout(done, ASK_AGAIN[Math.min(times, ASK_AGAIN.length - 1)]));
  }
}
