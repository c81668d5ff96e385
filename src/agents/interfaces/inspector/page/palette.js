// Colours that people with colour blindness tell apart: Okabe and Ito's, and cividis for amounts.

/** @type {Record<string, string>} */
export const TIERS = {
  pinned: "#d55e00", critical: "#e69f00", important: "#0072b2", normal: "#8fc5e8", low: "#b8b8b8",
};
/** @type {Record<string, string>} */
export const TEMPERATURES = { hot: "#d55e00", warm: "#e69f00", cold: "#56b4e9", archived: "#c8c8c8", deleted: "#7c7c7c" };
export const RUNS = ["#0072b2", "#d55e00"];
export const RUNS_DARK = ["#6bb8ea", "#f0894a"];

const CIVIDIS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
  [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
];

/** @param {number} share between 0 and 1 @returns {number[]} red, green and blue */
export function amount(share) {
  const at = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  const part = at - low;
  return CIVIDIS[low].map((value, index) => Math.round(value + (CIVIDIS[low + 1][index] - value) * part));
}

/** @param {number} share */
export const amountColour = (share) => `rgb(${amount(share).join(" ")})`;

/** Whether dark text is legible on the colour of this amount. @param {number} share */
export const isLight = (share) => share > 0.55;

export const isDark = () => {
  const chosen = document.documentElement.dataset.scheme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** @param {string} name of a custom property of the style sheet */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
