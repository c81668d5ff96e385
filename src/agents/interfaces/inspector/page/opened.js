// Which of a sweep's runs, or which experiment's two runs, the page looks at: the address says it, and the server opens it.
// Other pages of the same server may look at others: each request says which.
import { useEffect, useState } from "#vendor/htm-preact";
import { forget, site } from "#answers";

/** @typedef {import("./types").Address} Address */

/** @param {{cell?: string, effect?: string}} place */
const keyOf = ({ cell = "", effect = "" }) => JSON.stringify([cell, effect]);

/** Openings come one after another: each begins where the last one ended. */
let underWay = Promise.resolve();

/** Open what the address names. @param {Address} address */
async function open({ cell, effect }) {
  const { get } = site.provider;
  await get("open", { name: cell, effect });
  Object.assign(site.about, await get("about", { cell, effect }));
  forget();
}

/** Whether what the address names is open, and why it can't be. @param {Address} address
 * @returns {{isOpen: boolean, error: any}} */
export function useOpened(address) {
  const [state, setState] = useState(() => ({
    key: keyOf(site.about), error: /** @type {any} */ (null),
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
