// The inspector: what the model has now, what it costs, what left and why, and how the link does.
//
// It draws snapshots of the server, whole; what did not change is left alone, so that a reader's place stays where it is.

import { bytes, clockTime, count, decimal, removalWords, windowWords } from "./words.js";

const LEFT_MOST = 60;
const TURNS_MOST = 30;
const SLOW_MS = 1500;
const ROLES = { user: "You", assistant: "Reply", system: "Instructions", developer: "Instructions", tool: "Tool result" };

export class Inspector {
  #at;
  #drawn = new Map(); // message id → {element, facts}
  #last = null;

  /** `at` finds an element by its id. */
  constructor(at) {
    this.#at = at;
  }

  /** The newest snapshot, or null. */
  get snapshot() {
    return this.#last;
  }

  clear() {
    this.#drawn.clear();
    this.#last = null;
    for (const id of ["messages", "left", "turns-body", "facts", "budgets"]) this.#at(id).replaceChildren();
    this.#at("inspector-sub").textContent = "Nothing yet";
    this.#show("messages", 0);
    this.#show("left", 0);
    this.#show("turns", 0);
    this.#show("facts", 0);
  }

  draw(snapshot) {
    this.#last = { ...this.#last, ...snapshot };
    const { messages = [], removed = [], budget = {}, turns = [], link = {}, packets = {}, frames = {} } = this.#last;
    this.#drawBudgets(budget);
    this.#drawMessages(messages, budget);
    this.#drawLeft(removed);
    this.#drawTurns(turns);
    this.#drawFacts({ ...link, frames, ...packets });
    const held = messages.filter((one) => one.state !== "pending");
    const live = held.length + (this.#last.omitted ?? 0);
    const pictures = budget.images ?? held.reduce((sum, one) => sum + (one.images?.length ?? 0), 0);
    this.#at("inspector-sub").textContent =
      `${plural(live, "message")}, ${plural(pictures, "picture")}` +
      (Number.isFinite(budget.tokens) ? `, ${count(budget.tokens)} tokens` : "");
  }

  // -- budgets ---------------------------------------------------------------------------------------------------------

  #drawBudgets(budget) {
    const rows = [
      ["Tokens", budget.tokens, budget.max_tokens, count],
      ["Pictures", budget.images, budget.images_max, count],
      ["Audio kept", budget.audio_seconds, budget.audio_seconds_max, (value) => `${decimal(value)} s`],
      ["History", budget.messages, budget.messages_max, count],
      ["Memory", budget.memory_bytes, budget.memory_max, bytes],
    ].filter(([, value]) => Number.isFinite(value));
    const room = this.#at("budgets");
    while (room.children.length > rows.length) room.lastElementChild.remove();
    rows.forEach(([name, value, most, words], index) => {
      const row = room.children[index] ?? room.appendChild(budgetRow());
      const bounded = Number.isFinite(most);
      const share = bounded && most > 0 ? Math.min(1, value / most) : 0;
      const text = bounded ? `${words(value)} of ${words(most)}` : `${words(value)}, no limit`;
      const [head, bar] = row.children;
      head.children[0].textContent = name;
      head.children[1].textContent = text;
      bar.setAttribute("aria-label", name);
      bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
      bar.setAttribute("aria-valuetext", text);
      bar.dataset.level = !bounded ? "open" : share > 0.85 ? "high" : "fine";
      bar.firstElementChild.style.setProperty("--share", share.toFixed(4));
    });
  }

  // -- messages --------------------------------------------------------------------------------------------------------

  #drawMessages(messages, budget) {
    const list = this.#at("messages");
    const follow = list.lastElementChild && this.#at("inspector").scrollTop > 0 && this.#nearEnd(list.lastElementChild);
    const ids = new Set(messages.map((one) => one.id));
    for (const [id, { element }] of this.#drawn) {
      if (!ids.has(id)) {
        element.remove();
        this.#drawn.delete(id);
      }
    }
    let before = null;
    messages.forEach((message, index) => {
      const facts = JSON.stringify([message, index, budget.max_tokens]);
      let drawn = this.#drawn.get(message.id);
      if (!drawn) {
        drawn = { element: document.createElement("li"), facts: "" };
        this.#drawn.set(message.id, drawn);
      }
      if (drawn.facts !== facts) {
        fillMessage(drawn.element, message, index, budget.max_tokens);
        drawn.facts = facts;
      }
      const place = before ? before.nextSibling : list.firstChild;
      if (place !== drawn.element) list.insertBefore(drawn.element, place);
      before = drawn.element;
    });
    this.#show("messages", messages.length);
    if (follow) before?.scrollIntoView({ block: "nearest" });
  }

  #nearEnd(element) {
    const room = this.#at("inspector").getBoundingClientRect();
    const place = element.getBoundingClientRect();
    return room.height > 0 && place.bottom > room.top && place.bottom <= room.bottom + 8;
  }

  #drawLeft(removed) {
    const newest = removed.slice(-LEFT_MOST).reverse();
    this.#at("left").replaceChildren(
      ...newest.map(({ text, reason, at }) => {
        const row = make("li");
        row.append(make("span", "", text || "a message without words"));
        const why = make("p", "left-why");
        why.append(make("b", "", removalWords(reason)));
        if (Number.isFinite(at)) why.append(` at ${minutes(at)}`);
        row.append(why);
        return row;
      }),
    );
    this.#show("left", newest.length);
  }

  // -- turns, link -----------------------------------------------------------------------------------------------------

  #drawTurns(turns) {
    const shown = turns.slice(-TURNS_MOST);
    this.#at("turns-body").replaceChildren(
      ...shown
        .map((turn, index) => {
          const row = make("tr");
          row.append(make("td", "", String(turns.length - shown.length + index + 1)));
          for (const name of ["transcript_ms", "response_ms", "first_audio_ms", "first_played_ms"]) {
            const value = turn[name];
            row.append(make("td", name === "first_played_ms" && value > SLOW_MS ? "slow" : "", count(value ?? NaN)));
          }
          return row;
        })
        .reverse(),
    );
    this.#show("turns", shown.length);
  }

  #drawFacts(figures) {
    const rows = Object.entries(figures).flatMap(([name, value]) => facts(name, value));
    const list = make("dl");
    for (const [name, value] of rows) {
      const row = make("div");
      row.append(make("dt", "", name), make("dd", "", value));
      list.append(row);
    }
    list.className = "facts";
    const old = this.#at("facts");
    if (old.innerHTML !== list.innerHTML) {
      list.id = "facts";
      old.replaceWith(list);
    }
    this.#show("facts", rows.length);
  }

  #show(id, many) {
    this.#at(id).hidden = many === 0;
    this.#at(`${id}-empty`).hidden = many > 0;
  }
}

function fillMessage(element, message, index, maxTokens) {
  element.className = "message";
  element.dataset.role = message.role;
  element.dataset.state = message.kept === false ? "evicted" : (message.state ?? "live");
  element.dataset.message = message.id;
  const body = make("div");
  const head = make("p", "message-head");
  const isFrame = !message.text && message.images?.length && message.source;
  head.append(make("span", "message-role", isFrame ? `Shown: ${message.source}` : (ROLES[message.role] ?? message.role)));
  if (message.created_at) head.append(make("span", "", clockTime(new Date(message.created_at * 1000))));
  const state = message.kept === false ? "evicted" : message.state;
  if (state && state !== "live") {
    const words = { pending: "still going on", evicted: "leaves next" }[state];
    head.append(make("span", "message-state", words));
  }
  const why = windowWords(message.why);
  if (why) head.append(make("span", "message-why", why));
  if (Number.isFinite(message.tokens)) head.append(make("span", "message-tokens", `${count(message.tokens)} tokens`));
  const text = make("p", "message-text");
  if (message.text) text.append(message.text);
  if (message.unheard) text.append(make("span", "unheard", ` ${message.unheard}`));
  body.append(head, text);
  if (message.interrupted) {
    const fate = make("p", "left-why");
    fate.append(make("b", "", "interrupted"), message.unheard ? ": what is struck through was not heard; the model does not hold it" : "");
    body.append(fate);
  }
  for (const call of message.tool_calls ?? []) body.append(make("p", "message-text", `${call.name}(${call.arguments ?? "…"})`));
  if (message.images?.length && message.state !== "pending") {
    const pictures = make("div", "message-pictures");
    for (const { url, aspect } of message.images) {
      const picture = make("img");
      picture.alt = `What ${message.source || "was shown"} looked like, picture ${index + 1}`;
      picture.loading = "lazy";
      if (aspect > 0) {
        picture.dataset.shaped = "";
        picture.style.setProperty("--aspect", String(aspect));
      }
      picture.addEventListener("error", () => picture.remove()); // it left the conversation before it was asked for
      picture.src = url;
      pictures.append(picture);
    }
    body.append(pictures);
  }
  if (Number.isFinite(message.tokens) && maxTokens > 0) {
    const share = make("div", "message-share");
    share.append(make("span"));
    share.firstElementChild.style.setProperty("--share", Math.min(1, message.tokens / maxTokens).toFixed(4));
    share.title = `${decimal((100 * message.tokens) / maxTokens)} % of the window`;
    body.append(share);
  }
  element.replaceChildren(make("span", "message-number", String(index + 1)), body);
}

function budgetRow() {
  const row = make("div", "budget");
  const head = make("p", "budget-head");
  head.append(make("b"), make("span"));
  const bar = make("div", "budget-bar");
  bar.setAttribute("role", "meter");
  bar.setAttribute("aria-valuemin", "0");
  bar.setAttribute("aria-valuemax", "100");
  bar.append(make("span"));
  row.append(head, bar);
  return row;
}

/** One figure, or several of a group, as [name, words]. */
function facts(name, value, group = "") {
  if (value === null || value === undefined) return [];
  if (typeof value === "object") return Object.entries(value).flatMap(([inner, one]) => facts(inner, one, named(name)));
  const words =
    typeof value !== "number"
      ? String(value).replaceAll("_", " ")
      : name.endsWith("_bytes") || name === "bytes"
        ? bytes(value)
        : name.endsWith("_ms")
          ? `${decimal(value)} ms`
          : decimal(value);
  return [[group ? `${group}: ${named(name).toLowerCase()}` : named(name), words]];
}

function named(name) {
  const words = name.replace(/_(ms|bytes)$/, "").replaceAll("_", " ");
  return (words[0] ?? "").toUpperCase() + words.slice(1).replace(/\brtt\b/, "round trip");
}

function minutes(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

const plural = (many, name) => `${count(many)} ${name}${many === 1 ? "" : "s"}`;

function make(name, kind, text) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  return element;
}
