// The bar with the tick cursor: buttons, the tick's number, and a line to drag on.
import { html, useEffect, useReducer, useRef } from "#vendor/htm-preact";
import { isFollowing, isLive, follow, isPlaying, moveTo, onPlay, pause, play, setSpeed, span, speedNow, step, tickNow } from "#time";

const SPEEDS = [1, 2, 5, 10, 25];

/** Call `set` with the share of the element's width, while a pointer is down on it.
 * @param {(share: number) => void} set @param {number} gutter pixels at its left that are not part of the axis */
export function dragging(set, gutter = 0) {
  return (/** @type {any} */ event) => {
    if (event.button !== 0) return;
    const element = event.currentTarget;
    const move = (/** @type {any} */ at) => {
      const box = element.getBoundingClientRect();
      set((at.clientX - box.left - gutter) / (box.width - gutter));
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
    move(event);
    event.preventDefault();
    element.focus?.({ preventScroll: true });
  };
}

/** The tick at a share of an axis on which each tick has a column of its own. @param {number} share */
export function tickAt(share) {
  const { first, last } = span();
  return first + Math.floor(share * (last - first + 1));
}

/** The middle of a tick's column, as a share of the axis. @param {number} tick */
export function shareOf(tick) {
  const { first, last } = span();
  return (tick - first + 0.5) / (last - first + 1);
}

export function CursorBar() {
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const field = useRef(null);
  useEffect(() => onPlay(() => redraw(null)), []);
  const { first, last } = span();
  const tick = tickNow();
  useEffect(() => {
    if (field.current && document.activeElement !== field.current) field.current.value = String(tick);
  }, [tick]);
  return html`<div class="cursor-bar" role="group" aria-label="tick cursor">
    <span class="buttons">
      <button title="first tick (Home)" aria-label="first tick" onClick=${() => moveTo(first)}>|◀</button>
      <button title="one tick back (←)" aria-label="one tick back" onClick=${() => step(-1)}>◀</button>
      <button class="play" id="play" title="play (space)" aria-pressed=${isPlaying()} onClick=${() => (isPlaying() ? pause() : play())}>
        ${isPlaying() ? "Pause" : "Play"}
      </button>
      <button title="one tick on (→)" aria-label="one tick on" onClick=${() => step(1)}>▶</button>
      <button title="last tick (End)" aria-label="last tick" onClick=${() => (isLive() ? follow() : moveTo(last))}>▶|</button>
      <select id="speed" title="ticks a second" aria-label="ticks a second" value=${speedNow()} onChange=${(/** @type {any} */ event) => setSpeed(Number(event.currentTarget.value))}>
        ${SPEEDS.map((each) => html`<option value=${each}>${each}/s</option>`)}
      </select>
    </span>
    <label class="tick-field">tick
      <input id="tick" ref=${field} type="number" min=${first} max=${last} data-tick=${tick}
        onChange=${(/** @type {any} */ event) => event.currentTarget.value !== "" && moveTo(Number(event.currentTarget.value))} />
      <span class="soft">of ${last}</span></label>
    <div class="line-of-ticks" id="ticks" tabindex="0" role="slider" aria-label="tick" aria-valuemin=${first} aria-valuemax=${last}
      aria-valuenow=${tick} onPointerDown=${dragging((share) => moveTo(tickAt(share)))}>
      <span class="rail"></span>
      <span class="passed" style=${{ width: `${shareOf(tick) * 100}%` }}></span>
      <span class="knob" style=${{ left: `${shareOf(tick) * 100}%` }}></span>
    </div>
    ${isLive() && html`<button class=${isFollowing() ? "live on" : "live"} id="live" title="stay at the last tick" onClick=${follow}>
      ${isFollowing() ? "following" : "follow"}</button>`}
  </div>`;
}
