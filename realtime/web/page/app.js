// The page: its parts, and who tells whom. What is said and shown goes to the server that the page came from, nowhere else.

import { Call } from "./call.js";
import { Captions } from "./captions.js";
import { Conversation } from "./conversation.js";
import { Inspector } from "./inspector.js";
import { forget, recall, remember, tokenOfAddress } from "./memory.js";
import { Level, loudness, Voices } from "./meter.js";
import { Notices } from "./notices.js";
import { Playout } from "./playout.js";
import { Setup } from "./setup.js";
import { Sources } from "./sources.js";
import { TalkKey } from "./talk.js";
import { callTrouble, endingWords, WAYS } from "./words.js";

const at = (id) => document.getElementById(id);
const base = new URL(".", location.href);
const WIDE = matchMedia("(min-width: 48rem)");
const SAVE_MS = 1000;
const LINKS = { connecting: "Connecting", live: "Connected", waiting: "Reconnecting" };

const audio = at("reply");
const sources = new Sources();
const call = new Call(base);
const notices = new Notices(at("notices"));
const captions = new Captions(at("captions"), at("spoken"));
const inspector = new Inspector(at);
const setup = new Setup(at, sources, audio);
const level = new Level();
const playout = new Playout(
  (position) => call.sendNow({ type: "played", ...position }),
  () => level.outputLatency,
  () => audio.paused,
);
const conversation = new Conversation({ at, call, captions, inspector, notices });
const talk = new TalkKey({ at, onChange: applyMicrophone, send: (message) => call.send(message) });
const voices = new Voices(at("voices-canvas"), () => ({ yours: showLevel(), reply: loudness(playout.level) }));

let token = tokenOfAddress();
let config = { token_required: false, model: "" };
let muted = false;
let saving = 0;

// -- what goes out -----------------------------------------------------------------------------------------------------

/** The microphone is open when it is not muted and, with push-to-talk, while the key is held. */
function applyMicrophone() {
  const track = sources.track("microphone");
  if (track) track.enabled = !muted && talk.open;
  const off = muted || !track;
  at("mute").setAttribute("aria-pressed", String(off));
  at("mute-word").textContent = off ? "Unmute" : "Mute";
  at("mute-icon").setAttribute("href", off ? "#i-mic-off" : "#i-mic");
  conversation.muted = off;
}

sources.addEventListener("change", async ({ detail: { source } }) => {
  const track = sources.track(source);
  if (track) notices.clear(source);
  if (source === "microphone") {
    level.use(track);
    applyMicrophone();
  } else {
    const preview = at(`preview-${source}`);
    preview.srcObject = track ? new MediaStream([track]) : null;
    at(`tile-${source}`).hidden = !track;
    at(source).setAttribute("aria-pressed", String(Boolean(track)));
  }
  save();
  try {
    await call.setTrack(source, track);
  } catch {
    notices.show(`The ${source} could not be added to the call. Switch it off and on again.`, { about: source });
  }
});

sources.addEventListener("trouble", ({ detail: { source, words, mild } }) => {
  if (!mild) setup.trouble(source, words);
  const about = { about: source, kind: mild ? "good" : source === "screen" ? "warn" : "wrong" };
  if (at("setup").offsetParent === null || !at(`note-${source}`)) notices.show(words, about);
});

at("mute").addEventListener("click", async () => {
  if (!sources.track("microphone")) {
    muted = false;
    await sources.open("microphone");
  } else {
    muted = !muted;
  }
  applyMicrophone();
  call.send({ type: "muted", on: muted });
  save();
});
for (const source of ["camera", "screen"]) {
  at(source).addEventListener("click", () => {
    if (sources.track(source)) sources.close(source);
    else sources.open(source);
  });
  at(`look-${source}`).addEventListener("click", () => call.send({ type: "look", source }));
}
at("stop").addEventListener("click", () => call.send({ type: "interrupt" }));
at("end").addEventListener("click", () => call.end());
at("announce").addEventListener("change", ({ target }) => (captions.announce = target.checked));

const text = at("text");
at("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const said = text.value.trim();
  if (!said) return;
  if (call.send({ type: "text", text: said })) text.value = "";
  else notices.show("That was not sent: there is no connection just now. It is kept in the box.", { about: "text" });
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at("composer").requestSubmit();
});

const downloads = { wanted: "" };
for (const kind of ["context", "recording"]) {
  at(`download-${kind}`).addEventListener("click", () => {
    downloads.wanted = kind;
    call.send({ type: "download" });
  });
}
/** What can be fetched now; if one was asked for, fetch it. */
function offerFiles(files) {
  const find = (kind) => files.find(({ name }) => name.includes(kind));
  at("download-context").disabled = !find("context");
  at("download-recording").disabled = !find("recording");
  const file = downloads.wanted && find(downloads.wanted);
  downloads.wanted = "";
  if (!file) return;
  const link = document.createElement("a");
  link.href = file.url;
  link.download = file.name;
  link.click();
}

// -- what comes in -----------------------------------------------------------------------------------------------------

call.addEventListener("track", ({ detail: { track, receiver } }) => {
  if (track.kind !== "audio") return;
  audio.srcObject = new MediaStream([track]);
  playout.use(receiver);
  play();
});

function play() {
  level.resume();
  audio.play().catch(({ name }) => {
    if (name === "NotAllowedError") askToPlay("The browser plays no sound before you touch the page.");
  });
}
function askToPlay(words) {
  notices.show(words, { about: "sound", owed: true, actions: [{ name: "Play the sound", act: play }] });
}
audio.addEventListener("playing", () => notices.clear("sound"));
audio.addEventListener("pause", () => {
  if (call.state === "live" && audio.srcObject?.active) askToPlay("The sound was paused; you hear nothing.");
});

call.addEventListener("sender", ({ detail }) => call.limit(detail));

call.addEventListener("message", ({ detail: message }) => {
  if (message.type === "welcome") {
    at("model").textContent = message.model ?? "";
    talk.required = Boolean(message.push_to_talk);
    if (document.activeElement === at("mute")) firstControl().focus(); // the space bar would mute there
    conversation.welcome(message);
    call.send({ type: "inspect", on: inspecting() });
    if (muted) call.send({ type: "muted", on: true });
    saveNow(); // a page may be reloaded at once
    offerFiles((message.files ?? []).map((name) => ({ name })));
  } else if (message.type === "file") {
    offerFiles(message.files ?? []);
  } else if (message.type === "draining") {
    notices.show("The server is shutting down soon; this call ends then.", { about: "draining" });
  } else if (message.type === "error") {
    const about = WAYS.has(message.code) ? "way" : `error ${message.code}`;
    notices.show(callTrouble(message.code, message.message), { about, kind: "wrong" });
  } else {
    conversation.take(message);
    save();
  }
});

call.addEventListener("state", ({ detail: { state, words, reason } }) => {
  const link = { connecting: "waiting", waiting: "waiting", live: "live", ended: "idle" }[state] ?? "idle";
  at("link").dataset.link = link;
  at("link-words").textContent = LINKS[state] ?? "Not connected";
  document.body.dataset.link = link;
  if (state === "live") notices.clear("way");
  if (state === "ended") leave(words, reason);
  else conversation.way = state === "live" ? "" : words;
});

// -- begin and end -----------------------------------------------------------------------------------------------------

function enter() {
  document.body.dataset.state = "call";
  notices.clear();
  conversation.way = "Connecting";
  if (WIDE.matches) showInspector(true);
  voices.start();
  applyMicrophone();
}

at("begin").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("start").disabled = true;
  level.resume();
  try {
    if (!at("token-row").hidden) token = at("token").value;
    const wanted = ["microphone", "camera"].filter((source) => setup.wants(source));
    for (const source of wanted) if (!sources.track(source)) await sources.open(source);
    const refused = new Map(["microphone", ...wanted].map((source) => [source, setup.wrong(source)]));
    captions.clear();
    inspector.clear();
    conversation.reset();
    await join(null);
    for (const [source, words] of refused) {
      const write = source === "microphone" ? " Until then you can write." : "";
      if (words) notices.show(words + write, { about: source, kind: "wrong" });
    }
    firstControl().focus();
  } finally {
    at("start").disabled = false;
  }
});

/** Where the work is: the key that is held to be heard, the microphone's own, or the box to write in. */
function firstControl() {
  if (!sources.track("microphone")) return text;
  return talk.mode ? at("talk") : at("mute");
}

async function join(identity) {
  enter();
  level.resume();
  for (const source of sources.live) await call.setTrack(source, sources.track(source));
  call.start({ token, identity });
}

/** Back to the lobby; what was said stays readable behind the next beginning. */
function leave(words, reason) {
  clearTimeout(saving);
  saving = 0;
  forget();
  playout.use(null);
  voices.stop();
  audio.srcObject = null;
  sources.closeAll();
  muted = false;
  if (!WIDE.matches) showInspector(false); // the lobby is under it
  talk.release();
  offerFiles([]);
  setup.open(false);
  setup.want("microphone", true);
  document.body.dataset.state = "lobby";
  if (reason === "bad_token") showTokenField();
  const told = [...at("notices").children].some((one) => one.dataset.about === `error ${reason}`);
  if (!told) notices.clear();
  if (!told) notices.show(words || endingWords(reason), { about: "end", kind: words || !reason ? "good" : "warn" });
  conversation.reset();
  at("start").textContent = "Begin another call";
  at("start").focus();
}

function showTokenField() {
  at("token-row").hidden = false;
  at("token").value = "";
}

function save() {
  if (saving || !call.identity) return;
  saving = setTimeout(saveNow, SAVE_MS);
}

function saveNow() {
  clearTimeout(saving);
  saving = 0;
  if (!call.identity) return;
  const devices = Object.fromEntries(["microphone", "camera"].map((source) => [source, sources.choice(source)]));
  const on = sources.live.filter((source) => source !== "screen"); // a screen must be chosen anew each time
  remember({ identity: call.identity, token, on, devices, muted, push: talk.mode, captions: captions.dump() });
}
addEventListener("pagehide", saveNow);

async function goOn(kept) {
  token ||= kept.token ?? "";
  muted = Boolean(kept.muted);
  talk.mode = Boolean(kept.push);
  captions.restore(kept.captions ?? []);
  enter();
  for (const [source, id] of Object.entries(kept.devices ?? {})) if (id) await sources.choose(source, id);
  await Promise.all((kept.on ?? []).map((source) => sources.open(source)));
  await join(kept.identity);
}

// -- the inspector and the keys ----------------------------------------------------------------------------------------

const inspecting = () => document.body.dataset.inspector === "open";

function showInspector(on) {
  document.body.dataset.inspector = on ? "open" : "closed";
  at("inspector-toggle").setAttribute("aria-expanded", String(on));
  coverStage();
  if (call.state !== "idle") call.send({ type: "inspect", on });
}

/** What lies under the inspector cannot be reached while it lies there. */
function coverStage() {
  at("stage").inert = inspecting() && !WIDE.matches;
}
WIDE.addEventListener("change", coverStage);

at("inspector-toggle").addEventListener("click", () => {
  showInspector(!inspecting());
  if (inspecting() && !WIDE.matches) at("inspector-close").focus();
});
at("inspector-close").addEventListener("click", () => {
  showInspector(false);
  at("inspector-toggle").focus();
});
addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  if (at("setup").hasAttribute("data-open")) setup.open(false);
  else if (inspecting() && !WIDE.matches) at("inspector-close").click();
});

/** The microphone's level, shown where it can be seen. */
function showLevel() {
  const track = sources.track("microphone");
  const value = track?.enabled ? level.read() : 0;
  const meter = at("level");
  if (meter.offsetParent !== null) {
    meter.style.setProperty("--level", value.toFixed(3));
    const rounded = Math.round(value * 10) * 10;
    if (meter.getAttribute("aria-valuenow") !== String(rounded)) {
      meter.setAttribute("aria-valuenow", String(rounded));
      meter.setAttribute("aria-valuetext", rounded === 0 ? "silent" : `${rounded} percent`);
    }
  }
  return value;
}
setInterval(() => document.body.dataset.state === "lobby" && showLevel(), 80);

async function begin() {
  at("host").textContent = location.host;
  try {
    const answer = await fetch(new URL("config", base), { cache: "no-store" });
    config = { ...config, ...(await answer.json()) };
  } catch {
    notices.show("The server does not answer. Is it still running?", { about: "config", kind: "wrong" });
  }
  at("model").textContent = config.model;
  at("lobby-model").textContent = config.model ? `, ${config.model}` : "";
  const kept = recall();
  if (config.token_required && !token && !kept) showTokenField();
  if (kept) await goOn(kept);
}

begin();
