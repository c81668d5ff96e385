// A question that got no answer, and what to do about it.
export class Refused extends Error {
  /** @param {string} message @param {string} hint */
  constructor(message, hint = "") {
    super(message);
    this.hint = hint;
  }
}
