// What the session tells, as captions and as the state of the floor: who speaks, who is waited for, what was looked at.

import { clockTime, endingWords, keepWords } from "./words.js";

const KEPT_MS = 1400;
const UNNAMED = ""; // a reply that began while the page was away

export class Conversation {
  #at;
  #call;
  #captions;
  #inspector;
  #notices;
  #muted = false;
  #floor = "idle"; // idle, you, thinking, reply
  #way = ""; // how far the connection is, as long as there is none
  #open = new Set(); // replies that sound, or are about to: whoever speaks meanwhile, they can be stopped
  #seen = new Map(); // source → {at, reason}
  #notes = 0;

  constructor({ at, call, captions, inspector, notices }) {
    this.#at = at;
    this.#call = call;
    this.#captions = captions;
    this.#inspector = inspector;
    this.#notices = notices;
    setInterval(() => this.#showSeen(), 1000);
  }

  set muted(on) {
    this.#muted = on;
    if (this.#floor === "idle") this.listen();
  }

  reset() {
    this.#floor = "idle";
    this.#way = "";
    this.#seen.clear();
    this.#open.clear();
    this.#offerStop();
    this.floor("");
  }

  /** The call has begun, or the page has come back to it; a reply may be sounding. */
  welcome({ replying }) {
    this.#open.clear();
    if (replying) this.#open.add(UNNAMED);
    this.#offerStop();
  }

  /** The connection is being made, in words; empty: it stands. */
  set way(words) {
    this.#way = words;
    if (words) this.floor(words);
    else this.listen();
  }

  /** Nobody speaks here: a reply has the floor, or it is free. */
  listen() {
    if (this.#open.size > 0) this.#take("reply", this.#way || "Replying. Speak, or press Stop, to interrupt");
    else this.#take("idle", this.#way || (this.#muted ? "You are muted" : "Listening"));
  }

  /** Say who has the floor. */
  floor(words) {
    if (this.#at("floor").textContent !== words) this.#at("floor").textContent = words || "\u00a0";
  }

  /** Take what the server said. */
  take(message) {
    switch (message.type) {
      case "event":
        this.#event(message);
        break;
      case "heard":
        this.#heard(message);
        break;
      case "history":
        this.#history(message);
        break;
      case "inspect":
        this.#inspect(message);
        break;
      default:
    }
  }

  #take(floor, words) {
    this.#floor = floor;
    this.#offerStop();
    this.floor(words);
  }

  #offerStop() {
    this.#at("stop").disabled = this.#open.size === 0;
  }

  /** A reply is over. One that began while the page was away has no name here. */
  #close(reply) {
    if (!this.#open.delete(reply)) this.#open.delete(UNNAMED);
    this.#offerStop();
    if (this.#floor === "reply") this.listen();
  }

  #event(event) {
    switch (event.event) {
      case "SpeechStarted":
        this.#captions.update(event.message_id, { role: "user" });
        this.#take("you", "You are speaking");
        break;
      case "SpeechStopped":
        if (this.#floor !== "you") break;
        if (this.#open.size > 0) this.listen();
        else this.#take("thinking", "Thinking");
        break;
      case "TranscriptUpdated":
        this.#transcript(event);
        break;
      case "MessageCommitted":
      case "MessageChanged":
        this.#message(event.message);
        break;
      case "InputRejected":
        if (event.message_id) this.#captions.remove(event.message_id);
        this.#notices.show(`The model did not take what was sent: ${event.reason}`, { about: "input" });
        break;
      case "TranscriptionFailed":
        this.#captions.update(event.message_id, { role: "user", text: "(not understood)", final: true });
        break;
      case "ReplyStarted":
        this.#open.delete(UNNAMED); // this one, or one that ends before it
        this.#open.add(event.reply_id);
        this.listen();
        break;
      case "ReplyInterrupted":
        this.#interrupted(event);
        break;
      case "TurnCompleted":
        for (const message of event.messages ?? []) this.#message(message);
        this.#close(event.reply_id);
        break;
      case "FrameKept":
        this.#seen.set(event.source, { at: performance.now() - (event.age_ms ?? 0), reason: event.reason });
        this.#flash(event.source);
        this.#showSeen();
        break;
      case "ToolCalled":
        this.#called(event);
        break;
      case "ToolFinished":
        this.#notices.clear(`approval ${event.call_id}`);
        this.#finished(event);
        break;
      case "ApprovalRequested":
        this.#approval(event);
        break;
      case "HandedOff":
        this.#note(`Handed over to ${event.handoff?.to_agent ?? "another agent"}`);
        break;
      case "ConnectionDropped":
        this.floor(event.will_retry ? "The model was lost; getting it back" : "The model was lost");
        break;
      case "Reconnected":
        this.listen();
        break;
      case "ErrorReported":
        this.#notices.show(`${event.where}: ${event.error}`, { about: "session" });
        break;
      case "SessionEnded":
        this.floor(endingWords(event.reason));
        break;
      default:
    }
  }

  #transcript({ message_id: id, role, text, final }) {
    if (role !== "user" && role !== "assistant") return;
    const known = this.#captions.get(id);
    if (known?.interrupted) return; // late words of a reply that was cut
    const facts = { role, text };
    if (role === "user") facts.final = Boolean(final);
    else if (!known?.final) facts.heard = known?.heard ?? 0;
    this.#captions.update(id, facts);
  }

  /** A message as it stands now: of a reply, what was heard of it. */
  #message(message, place) {
    if (message.role !== "user" && message.role !== "assistant") return;
    if (!message.text && !message.unheard) {
      if (!message.tool_calls?.length && !message.images && message.role === "user" && this.#captions.has(message.id)) {
        this.#captions.update(message.id, { role: "user", text: "(no words)", final: true });
      } else if (this.#captions.get(message.id)?.text === "") {
        this.#captions.remove(message.id);
      }
      return;
    }
    const { id, role, text, interrupted = false, unheard = "" } = message;
    const at = message.created_at ? { at: clockTime(new Date(message.created_at * 1000)) } : {}; // of a line that is new
    this.#captions.update(id, { role, text, interrupted, unheard, heard: null, final: true, ...at }, place);
  }

  /** What happened while the page was away, among what it knows. */
  #history({ messages = [], approvals = [] }) {
    const said = messages.filter(({ role, summary }) => ["user", "assistant", "tool"].includes(role) && !summary);
    const known = said.findLastIndex(({ id }) => this.#captions.has(id));
    let after = null;
    said.forEach((message, index) => {
      const place = { after, quiet: index <= known || known < 0 }; // only what is news is read out
      const { id, role, text = "", pending } = message;
      if (role === "tool") {
        const { tool_name: name = "", is_error = false } = message;
        after = this.#finished({ message_id: id, name, is_error, output: text }, place);
        return;
      }
      if (!pending) this.#message(message, place);
      else if (role === "user") this.#captions.update(id, { role, text }, place);
      else if (text) this.#captions.update(id, { role, text, heard: this.#captions.get(id)?.heard ?? 0 }, place);
      if (this.#captions.has(id)) after = id;
      for (const call of message.tool_calls ?? []) {
        after = this.#called({ message_id: id, ...call }, { after, quiet: true });
      }
    });
    const ids = new Set(said.map(({ id }) => id));
    for (const id of [...this.#captions.growing("user"), ...this.#captions.growing("assistant")]) {
      if (!ids.has(id)) this.#captions.remove(id); // nothing became of it
    }
    const waiting = new Map(approvals.map((one) => [`approval ${one.call_id}`, one]));
    for (const about of this.#notices.abouts) {
      if (about.startsWith("approval ") && !waiting.delete(about)) this.#notices.clear(about);
    }
    for (const one of waiting.values()) this.#approval(one);
  }

  #heard({ message_id: id, heard }) {
    const line = this.#captions.get(id);
    if (line && !line.final) this.#captions.update(id, { heard: Math.min(heard, line.text.length) });
  }

  #interrupted({ reply_id: reply, heard, unheard }) {
    const id = this.#captions.growing("assistant").at(-1);
    if (id !== undefined) {
      this.#captions.update(id, { text: heard ?? "", unheard: unheard ?? "", interrupted: true, heard: null, final: true });
    }
    this.#close(reply);
  }

  #inspect(snapshot) {
    this.#inspector.draw(snapshot);
    for (const message of snapshot.messages ?? []) {
      if (message.state === "pending" || message.summary || this.#captions.get(message.id)?.final) continue;
      const plain = { ...message, images: message.images?.length ?? 0 };
      if (message.text || message.unheard) this.#message(plain);
    }
  }

  #note(text) {
    this.#notes += 1;
    this.#captions.update(`note ${performance.timeOrigin} ${this.#notes}`, { role: "note", text, final: true });
  }

  /** A tool was called: one line, whether it is told now or caught up with. */
  #called({ message_id: message, call_id: call, name, arguments: given }, place) {
    const id = `call ${message} ${call}`; // a message may have several; a provider may use a call's id again
    this.#captions.update(id, { role: "note", text: `${name}(${given ?? ""})`, final: true }, place);
    return id;
  }

  /** A tool has answered. */
  #finished({ message_id: message, name, is_error: failed, output }, place) {
    const id = `result ${message}`;
    this.#captions.update(id, { role: "note", text: `${name} ${failed ? "failed" : "gave"}: ${output ?? ""}`, final: true }, place);
    return id;
  }

  /** A tool that somebody has to allow. */
  #approval({ call_id, name, arguments: given }) {
    const answer = (ok) => {
      const sent = this.#call.send({ type: "approve", call_id, ok });
      if (!sent) this.#notices.show("That was not sent: there is no connection just now. Answer again.", { about: "text" });
      return sent;
    };
    this.#notices.show(`May “${name}” be done? ${given ?? ""}`, {
      about: `approval ${call_id}`,
      owed: true,
      actions: [
        { name: "Allow", act: () => answer(true) },
        { name: "Refuse", act: () => answer(false) },
      ],
    });
  }

  #flash(source) {
    const tile = this.#at(`tile-${source}`);
    if (!tile) return;
    tile.dataset.kept = "";
    setTimeout(() => delete tile.dataset.kept, KEPT_MS);
  }

  #showSeen() {
    for (const source of ["camera", "screen"]) {
      const seen = this.#seen.get(source);
      const seconds = seen ? Math.round((performance.now() - seen.at) / 1000) : 0;
      const when = seconds < 2 ? "just now" : seconds < 90 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
      const place = this.#at(`seen-${source}`);
      const words = seen ? `Seen ${when}` : "";
      if (place.textContent !== words) place.textContent = words;
      place.title = seen ? `Shown to the model ${when}: ${keepWords(seen.reason)}` : "";
    }
  }
}
