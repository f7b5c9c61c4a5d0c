// Push-to-talk: a button, or the space bar, that is held while one speaks.

export class TalkKey {
  #at;
  #send;
  #onChange;
  #held = false;
  #mode = false;
  #required = false;

  constructor({ at, onChange, send }) {
    this.#at = at;
    this.#send = send;
    this.#onChange = onChange;
    const button = at("talk");
    button.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      button.setPointerCapture(event.pointerId);
      this.#hold(true);
    });
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) {
      button.addEventListener(type, () => this.#hold(false));
    }
    button.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch is no menu
    addEventListener("keydown", (event) => this.#key(event, true));
    addEventListener("keyup", (event) => this.#key(event, false));
    addEventListener("blur", () => this.#hold(false));
    document.addEventListener("visibilitychange", () => document.hidden && this.#hold(false));
    at("ptt-mode").addEventListener("change", ({ target }) => (this.mode = target.checked));
  }

  /** Whether one must hold to be heard. */
  get mode() {
    return this.#mode || this.#required;
  }

  set mode(on) {
    this.#mode = on;
    this.#apply();
  }

  /** The session does not find out by itself when a turn ends. */
  set required(on) {
    this.#required = on;
    this.#apply();
  }

  /** Whether the microphone is open. */
  get open() {
    return !this.mode || this.#held;
  }

  release() {
    this.#hold(false);
  }

  #apply() {
    const box = this.#at("ptt-mode");
    box.checked = this.mode;
    box.disabled = this.#required;
    this.#at("talk").hidden = !this.mode;
    if (!this.mode) this.#held = false;
    this.#onChange();
  }

  #hold(on) {
    if (on === this.#held || (on && !this.mode)) return;
    this.#held = on;
    this.#at("talk").setAttribute("aria-pressed", String(on));
    this.#send({ type: "push_to_talk", on });
    this.#onChange();
  }

  #key(event, down) {
    if (event.code !== "Space" || !this.mode || document.body.dataset.state !== "call") return;
    const target = event.target;
    const talks = target === this.#at("talk");
    if (!talks && down && target.closest?.("input, textarea, select, button, a, summary, [contenteditable]")) return;
    if (!down && !this.#held) return;
    event.preventDefault();
    if (!event.repeat) this.#hold(down);
  }
}
