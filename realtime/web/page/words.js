// What happened, in words for people: permissions, devices, reasons, figures. No element is touched here.

const NAMES = { microphone: "microphone", camera: "camera", screen: "screen" };

/** Why a device could not be opened, and what can be done. */
export function deviceTrouble(source, error) {
  const name = NAMES[source] ?? source;
  if (!navigator.mediaDevices) {
    return `Browsers give the ${name} only to pages that come over https, or from this computer itself (localhost).`;
  }
  switch (error?.name) {
    case "NotAllowedError":
      return source === "screen"
        ? "Nothing is shared: the choice was canceled, or the browser does not allow it."
        : `The browser does not allow this page to use the ${name}. Allow it beside the address, then switch it on again.`;
    case "NotFoundError":
      return `No ${name} was found. Connect one, then switch it on again.`;
    case "NotReadableError":
    case "AbortError":
      return `The ${name} does not start. Another program may be using it: close that one, then try again.`;
    case "OverconstrainedError":
      return `The ${name} that was chosen is not there any more. Choose another one.`;
    case "SecurityError":
      return `The browser's settings forbid the ${name} on this page.`;
    default:
      return `The ${name} cannot be used: ${error?.message || "the browser does not say why"}.`;
  }
}

/** What is said until there is a connection after all. */
export const WAYS = new Set(["connect_timeout", "connect_failed", "no_media"]);

/** What the server's error codes mean. */
export function callTrouble(code, message) {
  const known = {
    bad_token: "The access token is not right. Ask whoever runs this server for the current one.",
    bad_origin: "This server does not take calls from this address.",
    full: "The server has as many calls as it can take. Try again in a while.",
    rate: "Too many attempts from here. Wait a minute, then try again.",
    too_large: "That was more than the server takes at once.",
    connect_timeout: "Sound and pictures found no way to the server in time; a firewall may be in between. Trying again",
    connect_failed: "Sound and pictures found no way to the server; a firewall may be in between. Trying again",
    no_media: "The connection stands, but no sound and no picture comes through it. Trying again",
    session_failed: "The conversation could not go on",
    gone: "That conversation has ended on the server. You can begin another one.",
    replaced: "This conversation goes on in another window.",
    draining: "The server is shutting down and takes no new calls.",
    refused: "That could not be done",
  }[code];
  if (!known) return message || "The server reported something that this page does not know.";
  if (/[.]$/.test(known)) return known;
  return message || !WAYS.has(code) ? `${known}: ${message || "the server does not say why"}.` : `${known}.`;
}

/** Why a call is over. */
export function endingWords(reason) {
  return (
    {
      error: "The call ended because something failed.",
      failed: "The call ended because something failed.",
      usage_limit: "The call ended: it used all that it may.",
      link_lost: "The call ended: the model could not be reached any more.",
      idle: "The call ended: nobody had said anything for a long time.",
      time_limit: "The call ended: it had lasted as long as calls may.",
      server_ended: "The call ended: the server is shutting down.",
      gone: "The call ended: the server had lost you for too long.",
      replaced: "This conversation goes on in another window.",
    }[String(reason ?? "").replace(/^session_/, "")] ?? "The call has ended."
  );
}

const REMOVALS = {
  image_budget: "evicted: the picture budget was full",
  image_every_n: "not kept: only one of several pictures is",
  window: "trimmed: the context window was full",
  summary: "summarized: a digest stands in its place",
  history_limit: "evicted: the history was full",
  memory_limit: "evicted: the memory cap was reached",
  rejected: "refused by the model",
  audio_budget: "its sound was evicted: the audio budget was full",
  interrupted: "cut to what was heard",
  late_result: "a result came late",
};

export const removalWords = (reason) => REMOVALS[reason] ?? String(reason ?? "").replaceAll("_", " ");

const STAYS = {
  instruction: "an instruction: it stays",
  open_call: "a call without its result: it stays",
  recent_turn: "of the newest turns: it stays",
  recent_frame: "of the newest pictures: it stays",
  part_of_kept_unit: "its tool round stays",
  newest_that_fit: "enough older ones go",
  old_frame: "an old picture",
  old_turn: "an old turn",
};

/** Why the window keeps a message, or lets it go. Empty while nothing has to go. */
export const windowWords = (reason) => (reason === "within_budget" ? "" : (STAYS[reason] ?? reason ?? ""));

const KEEPS = {
  first: "the first picture",
  schedule: "on schedule",
  max_gap: "nothing was shown for a while",
  end_of_turn: "you had finished speaking",
  look: "you asked for it",
};

export const keepWords = (reason) => KEEPS[reason] ?? String(reason ?? "").replaceAll("_", " ");

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (value) => (Number.isFinite(value) ? whole.format(value) : "–");
export const decimal = (value) => (Number.isFinite(value) ? short.format(value) : "–");

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  if (value < 1000) return `${whole.format(value)} B`;
  if (value < 1e6) return `${short.format(value / 1e3)} kB`;
  return value < 1e9 ? `${short.format(value / 1e6)} MB` : `${short.format(value / 1e9)} GB`;
}

export function clockTime(date = new Date()) {
  return date.toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });
}
