// Short messages that people must see: said at once by screen readers, gone when they are put away or do not hold any more.

const MOST = 3;
const MILD_MS = 12_000;

export class Notices {
  #room;
  #timers = new WeakMap();

  constructor(room) {
    this.#room = room;
  }

  /**
   * Show a text. `about` names what it is about: a newer one takes its place. `kind`: wrong, warn or good. What has
   * `actions` is not pushed out by what comes later; each is {name, act}, and one whose `act` gives false leaves it there.
   * What is `owed` an answer goes only with one.
   */
  show(text, { about = "", kind = "warn", actions = [], owed = false } = {}) {
    if (!text) return;
    if (about) this.clear(about);
    const notice = document.createElement("div");
    notice.className = "notice";
    notice.dataset.kind = kind;
    if (about) notice.dataset.about = about;
    const words = document.createElement("p");
    words.textContent = text;
    notice.append(words);
    for (const action of actions) {
      const act = document.createElement("button");
      act.type = "button";
      act.className = "notice-act";
      act.textContent = action.name;
      act.addEventListener("click", () => {
        if (action.act() !== false) notice.remove();
      });
      notice.append(act);
    }
    if (actions.length > 0) notice.dataset.asks = "";
    if (!owed) notice.append(this.#closer(notice));
    this.#room.append(notice);
    const mere = [...this.#room.children].filter((one) => !("asks" in one.dataset));
    for (const old of mere.slice(0, Math.max(0, mere.length - MOST))) old.remove();
    if (kind === "good") this.#timers.set(notice, setTimeout(() => notice.remove(), MILD_MS));
  }

  #closer(notice) {
    const close = document.createElement("button");
    close.type = "button";
    close.setAttribute("aria-label", "Put this message away");
    close.innerHTML = '<svg aria-hidden="true"><use href="#i-close"/></svg>';
    close.addEventListener("click", () => notice.remove());
    return close;
  }

  /** What the ones that are shown are about. */
  get abouts() {
    return [...this.#room.children].map((one) => one.dataset.about ?? "");
  }

  /** Put away what is about something; everything if nothing is named. */
  clear(about = null) {
    for (const notice of [...this.#room.children]) {
      if (about === null || notice.dataset.about === about) {
        clearTimeout(this.#timers.get(notice));
        notice.remove();
      }
    }
  }
}
