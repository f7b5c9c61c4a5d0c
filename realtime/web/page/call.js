// One call: the signalling websocket, the peer connection and its data channel, and the way back after a loss.
//
// Tells: "state" ({state, words}) with state idle, connecting, live, waiting, ended; "message" (what the server said and
// is not signalling); "track" ({track, receiver}); "sender" ({source, max_width, max_height, max_fps}).
//
// The call belongs to the server and lasts while connections come and go: each new websocket says hello with the call's
// id and secret, and each new peer connection is a new offer on the same session.

const BACK_OFF_MS = [200, 500, 1000, 2000, 4000];
const GIVE_UP_MS = 120_000; // as long as a way back is tried
const DISCONNECTED_MS = 1500; // ICE may mend itself within this
const CONNECT_MS = 15_000;
const MEDIA_MS = 20_000; // the server waits for less, and says what was missing
const ANSWER_MS = 10_000; // gathering candidates may take the server five seconds
const WELCOME_MS = 100_000; // a model may have to be loaded first
const LOST_MEDIA = new Set(["peer_lost", "connect_failed", "connect_timeout", "no_media"]);
const MENDED = "peer_lost"; // happens to everybody, and is over at once; the others are told

export class Call extends EventTarget {
  #base;
  #socket = null;
  #pc = null;
  #channel = null;
  #senders = new Map(); // source → RTCRtpSender
  #tracks = new Map(); // source → MediaStreamTrack, what is to be sent
  #limits = new Map(); // source → the newest {max_width, max_height, max_fps}: a source may be switched on after it came
  #identity = null; // {call, secret}
  #token = "";
  #iceServers = [];
  #state = "idle";
  #attempt = 0;
  #lostAt = 0;
  #stood = false; // whether the present peer connection has been connected
  #timers = new Map();
  #places = ["microphone"]; // sources that the server takes

  constructor(base) {
    super();
    this.#base = base;
    addEventListener("online", () => this.#hurry());
  }

  get state() {
    return this.#state;
  }

  get identity() {
    return this.#identity;
  }

  /** Begin, or go on with the call that `identity` names. */
  start({ token = "", identity = null }) {
    this.#token = token;
    this.#identity = identity;
    this.#attempt = 0;
    this.#lostAt = 0;
    this.#become("connecting", identity ? "Coming back" : "Connecting");
    this.#open();
  }

  /** What is sent under a name from now on; null: nothing. */
  async setTrack(source, track) {
    if (track) this.#tracks.set(source, track);
    else this.#tracks.delete(source);
    await this.#senders.get(source)?.replaceTrack(track);
    await this.#applyLimit(source);
  }

  /** Say something to the server: over the websocket, or over the data channel while that is away. Tells if it went. */
  send(message) {
    const text = JSON.stringify(message);
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text);
    else if (this.#channel?.readyState === "open") this.#channel.send(text);
    else return false;
    return true;
  }

  /** Over the data channel or not at all: what is stale when it is late. */
  sendNow(message) {
    if (this.#channel?.readyState === "open" && this.#channel.bufferedAmount < 16_384) {
      this.#channel.send(JSON.stringify(message));
    }
  }

  /** Hang up. */
  end(words = "The call has ended.") {
    if (this.#state === "ended" || this.#state === "idle") return;
    this.send({ type: "bye" });
    this.#finish(words);
  }

  // -- the websocket ---------------------------------------------------------------------------------------------------

  #open() {
    this.#drop();
    const url = new URL("call", this.#base);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.search = location.search; // what the page was called with is the session factory's to know
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#after("connect", CONNECT_MS, () => this.#lost("The server does not answer"));
    socket.addEventListener("open", () => {
      if (socket === this.#socket) this.#after("connect", WELCOME_MS, () => this.#lost("The model does not begin"));
      const hello = { type: "hello" };
      if (this.#token) hello.token = this.#token;
      if (this.#identity) Object.assign(hello, this.#identity);
      socket.send(JSON.stringify(hello));
    });
    socket.addEventListener("message", ({ data }) => {
      if (socket === this.#socket) this.#take(data);
    });
    socket.addEventListener("close", () => {
      if (socket === this.#socket) this.#lost("The connection to the server was lost");
    });
  }

  #receive(message) {
    switch (message.type) {
      case "welcome":
        this.#identity = { call: message.call, secret: message.secret };
        this.#iceServers = message.ice_servers ?? [];
        this.#places = message.input?.video === false ? ["microphone"] : ["microphone", "camera", "screen"];
        this.#tell("message", message);
        this.#connect();
        break;
      case "answer":
        this.#answered(message.sdp);
        break;
      case "sender":
        this.#tell("sender", message);
        break;
      case "error":
        this.#error(message);
        break;
      case "bye":
        this.#tell("message", message);
        this.#finish("", message.reason);
        break;
      default:
        this.#tell("message", message);
    }
  }

  #error(message) {
    if (message.fatal && message.code === "rate" && this.#identity) {
      this.#lost("The server asks for a moment's patience"); // it has the call still
    } else if (message.fatal) {
      this.#tell("message", message);
      this.#finish("", message.code);
    } else if (LOST_MEDIA.has(message.code)) {
      if (message.code !== MENDED) this.#tell("message", message);
      if (!this.#timers.has("answer")) this.#mendSoon(); // or else it is about the connection before
    } else {
      this.#tell("message", message);
    }
  }

  // -- the peer connection ---------------------------------------------------------------------------------------------

  /** A new one, with a place for each source, used or not: switching a source on or off then needs no new offer. */
  async #connect() {
    this.#hangUp();
    const pc = new RTCPeerConnection({ iceServers: this.#iceServers, bundlePolicy: "max-bundle" });
    this.#pc = pc;
    this.#stood = false;
    const channel = pc.createDataChannel("realtime");
    this.#channel = channel;
    channel.addEventListener("message", ({ data }) => this.#take(data));
    pc.addEventListener("track", ({ track, receiver }) => this.#tell("track", { track, receiver }));
    pc.addEventListener("connectionstatechange", () => this.#connectionChanged(pc));
    let waiting = []; // candidates are told after the offer that they belong to
    pc.addEventListener("icecandidate", ({ candidate }) => {
      if (pc !== this.#pc) return;
      const message = { type: "candidate", candidate: candidate?.toJSON() ?? null };
      if (waiting) waiting.push(message);
      else this.send(message);
    });
    const places = new Map();
    for (const source of this.#places) {
      const audio = source === "microphone";
      const place = pc.addTransceiver(audio ? "audio" : "video", { direction: audio ? "sendrecv" : "sendonly" });
      places.set(source, place);
      this.#senders.set(source, place.sender);
    }
    this.#after("answer", ANSWER_MS, () => this.#lost("The server does not answer"));
    try {
      for (const [source, track] of this.#tracks) await this.#senders.get(source)?.replaceTrack(track);
      await pc.setLocalDescription(await pc.createOffer());
    } catch {
      if (pc === this.#pc) this.#lost("The browser could not make an offer");
      return;
    }
    if (pc !== this.#pc) return;
    const named = Object.fromEntries([...places].map(([source, { mid }]) => [mid, source]));
    this.send({ type: "offer", sdp: pc.localDescription.sdp, sources: named });
    for (const message of waiting) this.send(message);
    waiting = null;
    this.#after("connect", MEDIA_MS, () => {
      this.#tell("message", { type: "error", code: "connect_timeout" });
      this.#lost("Sound found no way to the server");
    });
  }

  async #answered(sdp) {
    const pc = this.#pc;
    this.#clear("answer");
    if (pc?.signalingState !== "have-local-offer") return;
    try {
      await pc.setRemoteDescription({ type: "answer", sdp });
    } catch {
      if (pc === this.#pc) this.#lost("The server's answer cannot be used");
    }
  }

  #take(data) {
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return; // not ours
    }
    this.#receive(message);
  }

  #connectionChanged(pc) {
    if (pc !== this.#pc) return;
    switch (pc.connectionState) {
      case "connected":
        this.#clear("mend");
        this.#clear("connect");
        this.#stood = true;
        this.#attempt = 0;
        this.#lostAt = 0;
        for (const source of this.#limits.keys()) this.#applyLimit(source);
        this.#become("live", "Connected");
        break;
      case "disconnected":
        this.#after("mend", DISCONNECTED_MS, () => this.#mend());
        break;
      case "failed":
        if (!this.#stood) this.#tell("message", { type: "error", code: "connect_failed" });
        this.#mendSoon();
        break;
      default:
    }
  }

  /** At once what stood; what never did, after a pause. */
  #mendSoon() {
    if (this.#stood) this.#mend();
    else if (!this.#timers.has("mend")) this.#after("mend", this.#pause(), () => this.#mend());
  }

  /** The network under the peer connection is gone: make another one, over the websocket if that still stands. */
  #mend() {
    this.#clear("mend");
    this.#lostAt ||= performance.now();
    if (performance.now() - this.#lostAt > GIVE_UP_MS) {
      this.#lost("Sound found no way to the server");
      return;
    }
    this.#become("waiting", "Finding another way");
    if (this.#socket?.readyState === WebSocket.OPEN) this.#connect();
    else this.#lost("The connection was lost");
  }

  // -- the way back ----------------------------------------------------------------------------------------------------

  #lost(words) {
    if (this.#state === "ended" || this.#state === "idle") return;
    this.#drop();
    this.#lostAt ||= performance.now();
    if (performance.now() - this.#lostAt > GIVE_UP_MS) {
      this.#finish(`${words}, and it did not come back.`);
      return;
    }
    this.#become("waiting", navigator.onLine ? `${words}. Trying again` : "This device is offline");
    this.#after("again", this.#pause(), () => this.#open());
  }

  /** How long to wait before the next attempt: longer each time. */
  #pause() {
    const delay = BACK_OFF_MS[Math.min(this.#attempt, BACK_OFF_MS.length - 1)];
    this.#attempt += 1;
    return delay * (0.8 + 0.4 * Math.random());
  }

  #hurry() {
    if (this.#timers.has("again")) this.#open();
    else if (this.#state === "live" && this.#pc?.connectionState !== "connected") this.#mend();
  }

  #finish(words, reason = "") {
    this.#drop();
    this.#identity = null;
    this.#tracks.clear();
    this.#limits.clear();
    this.#become("ended", words, reason);
  }

  #drop() {
    for (const name of [...this.#timers.keys()]) this.#clear(name);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#hangUp();
  }

  #hangUp() {
    const pc = this.#pc;
    this.#pc = null;
    this.#channel = null;
    this.#senders.clear();
    for (const name of ["answer", "mend", "connect"]) this.#clear(name);
    pc?.close();
  }

  #become(state, words, reason = "") {
    this.#state = state;
    this.#tell("state", { state, words, reason });
  }

  #after(name, delay, act) {
    this.#clear(name);
    this.#timers.set(
      name,
      setTimeout(() => {
        this.#timers.delete(name);
        act();
      }, delay),
    );
  }

  #clear(name) {
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Send no more of a source than is looked at, from now on. */
  limit({ source, ...most }) {
    this.#limits.set(source, most);
    return this.#applyLimit(source);
  }

  async #applyLimit(source) {
    const sender = this.#senders.get(source);
    const parameters = sender?.track && this.#limits.has(source) ? sender.getParameters() : null;
    if (!parameters?.encodings?.length) return;
    const { max_width: width, max_height: height, max_fps: fps } = this.#limits.get(source);
    const { width: fullWidth = 0, height: fullHeight = 0 } = sender.track.getSettings();
    const [encoding] = parameters.encodings;
    encoding.scaleResolutionDownBy = Math.max(1, width ? fullWidth / width : 1, height ? fullHeight / height : 1);
    if (fps) encoding.maxFramerate = fps;
    else delete encoding.maxFramerate;
    await sender.setParameters(parameters).catch(() => {}); // a sender may be at its end; the server bears with more
  }
}
