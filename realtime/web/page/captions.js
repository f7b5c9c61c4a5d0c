// The growing captions of both sides: what was said, what is still to be heard, what never was.
//
// A line's text stands in up to three parts, told apart by words and lines and not by color alone: heard (plain), still
// to come (dotted underline), never heard (struck through, with a sentence that says so).

import { clockTime } from "./words.js";

const MOST = 300; // lines; the oldest leave
const SPOKEN = 12; // captions that stay in the live region

export class Captions {
  #list;
  #spoken;
  #lines = new Map(); // message id → {element, role, text, heard, unheard, final, interrupted, at}
  #announce = true;

  constructor(list, spoken) {
    this.#list = list;
    this.#spoken = spoken;
  }

  set announce(on) {
    this.#announce = on;
    if (!on) this.#spoken.replaceChildren();
  }

  /**
   * Set what is known of a message; what is not given stays as it was. A line that is new stands at the end, or after the
   * message that `after` names (null: first), and with `quiet` it is not read out.
   */
  update(id, facts, { after, quiet = false } = {}) {
    const scrolled = this.#atEnd();
    const line = this.#lines.get(id) ?? this.#add(id, facts, after);
    const wasFinal = line.final;
    Object.assign(line, facts);
    this.#draw(line);
    if (line.final && !wasFinal && !quiet) this.#say(line);
    if (scrolled) this.toEnd();
  }

  /** Whether a message has a line. */
  has(id) {
    return this.#lines.has(id);
  }

  get(id) {
    return this.#lines.get(id) ?? null;
  }

  /** The ids of the lines that still grow, of what was said by a role. */
  growing(role) {
    return [...this.#lines].filter(([, line]) => line.role === role && !line.final).map(([id]) => id);
  }

  remove(id) {
    this.#lines.get(id)?.element.remove();
    this.#lines.delete(id);
  }

  clear() {
    this.#lines.clear();
    this.#list.replaceChildren();
    this.#spoken.replaceChildren();
  }

  /** As plain values, to be put back with `restore`. */
  dump() {
    const ids = [...this.#list.children].map(({ dataset }) => dataset.message); // as they stand
    return ids.slice(-100).map((id) => {
      const line = this.#lines.get(id);
      const { role, text, heard, unheard, final, interrupted, at } = line;
      return { id, role, text, heard, unheard, final, interrupted, at };
    });
  }

  restore(lines) {
    const announce = this.#announce;
    this.#announce = false; // what was read out before the reload is not read out again
    for (const { id, ...facts } of lines) this.update(id, facts);
    this.#announce = announce;
    this.toEnd();
  }

  toEnd() {
    const room = this.#list.parentElement;
    room.scrollTop = room.scrollHeight;
  }

  #atEnd() {
    const room = this.#list.parentElement;
    return room.scrollHeight - room.scrollTop - room.clientHeight < 80;
  }

  #add(id, { role, at }, after) {
    const element = document.createElement("li");
    element.className = "line";
    element.dataset.role = role;
    element.dataset.message = id;
    const who = make("p", "who", { user: "You", assistant: "Reply" }[role] ?? "Note");
    const line = { element, role, text: "", heard: null, unheard: "", final: false, interrupted: false, at: at ?? clockTime() };
    if (role !== "note") who.append(make("time", "", line.at));
    element.append(who, make("p", "said"));
    this.#lines.set(id, line);
    if (after === undefined) this.#list.append(element);
    else if (after === null) this.#list.prepend(element);
    else (this.#lines.get(after)?.element ?? this.#list.lastElementChild).after(element);
    while (this.#lines.size > MOST) this.remove(this.#lines.keys().next().value);
    return line;
  }

  #draw(line) {
    const [, said] = line.element.children;
    const parts = split(line);
    said.replaceChildren(...parts.map(([kind, text]) => make("span", kind, text)));
    line.element.toggleAttribute("data-growing", !line.final && line.role !== "note");
    line.element.toggleAttribute("data-interrupted", Boolean(line.interrupted));
    let fate = line.element.querySelector(".fate");
    if (!line.interrupted) {
      fate?.remove();
      return;
    }
    if (!fate) line.element.append((fate = make("p", "fate")));
    fate.replaceChildren(make("b", "", "Interrupted."), line.unheard ? " What is struck through was not heard." : "");
  }

  #say(line) {
    if (!this.#announce || line.role === "note" || !line.text) return;
    const cut = line.interrupted ? " Interrupted." : "";
    this.#spoken.append(make("p", "", `${line.role === "user" ? "You" : "Reply"}: ${line.text}${cut}`));
    while (this.#spoken.children.length > SPOKEN) this.#spoken.firstElementChild.remove();
  }
}

/** A line's parts: [["heard" | "ahead" | "unheard" | "", text], …]. */
export function split({ text, heard, unheard, interrupted }) {
  if (interrupted) {
    const gap = text && unheard && !/\s$/.test(text) && !/^\s/.test(unheard) ? " " : "";
    return [["heard", text], ["", gap], ["unheard", unheard]].filter(([, part]) => part);
  }
  let cut = heard ?? text.length;
  while (cut > 0 && cut < text.length && !/\s/.test(text[cut - 1])) cut -= 1; // whole words
  return [["heard", text.slice(0, cut)], ["ahead", text.slice(cut)]].filter(([, part]) => part);
}

function make(name, kind, text) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  return element;
}
