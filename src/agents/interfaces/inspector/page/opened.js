// Which of a sweep's runs, or which experiment's two runs, the page looks at: the address says it, and the server opens it.
import { useEffect, useState } from "#vendor/htm-preact";
import { forget, site } from "#answers";

/** @typedef {import("./types").Address} Address */
/** @typedef {import("./types").About} About */

/** @param {Pick<Address, "cell" | "effect">} address */
const keyOf = ({ cell, effect }) => JSON.stringify([cell, effect]);

/** The run of the sweep that is open; "" for the sweep itself, and where there is none. @param {About} about */
const cellOf = (about) => (about.sweep && about.kind !== "sweep" ? about.name : "");

/** Openings come one after another: each begins where the last one ended. */
let underWay = Promise.resolve();

/** Open what the address names. Nobody can ask the server which experiment is open: its two runs are opened anew.
 * @param {Address} address */
async function open({ cell, effect }) {
  const { get } = site.provider;
  try {
    if ((await get("about", {})).around) await get("open", { name: "" });
    if (cellOf(await get("about", {})) !== cell) await get("open", { name: cell });
    if (effect) await get("open", { effect });
  } finally {
    Object.assign(site.about, await get("about", {}));
    forget();
  }
}

/** Whether what the address names is open, and why it can't be. @param {Address} address
 * @returns {{isOpen: boolean, error: any}} */
export function useOpened(address) {
  const [state, setState] = useState(() => ({
    key: site.about.around ? "" : keyOf({ cell: cellOf(site.about), effect: "" }), error: /** @type {any} */ (null),
  }));
  const wanted = keyOf(address);
  useEffect(() => {
    if (state.key === wanted) return;
    underWay = underWay.then(() => open(address)).then(
      () => setState({ key: wanted, error: null }),
      (error) => setState({ key: wanted, error }),
    );
  }, [wanted, state.key]);
  return { isOpen: state.key === wanted, error: state.key === wanted ? state.error : null };
}
