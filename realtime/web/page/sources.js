// The microphone, the camera and the screen: separate named sources, each with its track, its choice and its troubles.
//
// Tells: "change" ({source}) when a source begins or ends; "trouble" ({source, words}) when a device refuses or is lost;
// "devices" when what can be chosen changed.

import { deviceTrouble } from "./words.js";

const GONE = new Set(["OverconstrainedError", "NotFoundError"]); // of a device that was chosen by its id
const KINDS = { microphone: "audioinput", camera: "videoinput", speaker: "audiooutput" };

export class Sources extends EventTarget {
  #tracks = new Map(); // source → MediaStreamTrack
  #chosen = new Map(); // source → device id; "" or absent: the system's choice
  #opening = new Map(); // source → number of the newest wish, so that a slow device does not come back after it was let go
  #wish = 0;

  constructor() {
    super();
    navigator.mediaDevices?.addEventListener("devicechange", () => this.#tell("devices"));
  }

  track(source) {
    return this.#tracks.get(source) ?? null;
  }

  get live() {
    return [...this.#tracks.keys()];
  }

  choice(source) {
    return this.#chosen.get(source) ?? "";
  }

  /** Choose a device; a source that is on goes on with it. */
  async choose(source, deviceId) {
    this.#chosen.set(source, deviceId);
    if (this.#tracks.has(source)) await this.open(source);
  }

  /** Open a source, or open it anew. Returns its track, or null if it could not be had (which was told). */
  async open(source) {
    const wish = ++this.#wish;
    const chosen = this.#chosen.get(source);
    this.#opening.set(source, wish);
    let track;
    try {
      track = await this.#acquireChosen(source);
    } catch (error) {
      if (this.#opening.get(source) === wish) {
        this.#letGo(source);
        this.#tell("trouble", { source, words: deviceTrouble(source, error) });
      }
      return null;
    }
    if (this.#opening.get(source) !== wish) {
      track.stop();
      return null;
    }
    this.#tracks.get(source)?.stop();
    this.#tracks.set(source, track);
    track.addEventListener("ended", () => this.#lost(source, track));
    this.#tell("change", { source });
    this.#tell("devices"); // names are known only once something was allowed
    if (chosen && !this.#chosen.has(source)) {
      const words = `The ${source} that was chosen is not there any more. It goes on with “${track.label || "another one"}”.`;
      this.#tell("trouble", { source, words, mild: true });
    }
    return track;
  }

  /** Let a source go. */
  close(source) {
    this.#opening.delete(source);
    this.#letGo(source);
  }

  closeAll() {
    for (const source of [...this.#opening.keys()]) this.close(source);
  }

  /** What can be chosen for a source: [{id, name}]. Empty as long as the browser does not tell. */
  async devices(source) {
    if (!navigator.mediaDevices?.enumerateDevices) return [];
    const all = await navigator.mediaDevices.enumerateDevices();
    return all
      .filter((one) => one.kind === KINDS[source] && one.deviceId && one.deviceId !== "default" && one.label)
      .map((one) => ({ id: one.deviceId, name: one.label }));
  }

  /** The chosen device, or the system's choice when that is not there any more. */
  async #acquireChosen(source) {
    const id = this.#chosen.get(source);
    try {
      return await this.#acquire(source);
    } catch (error) {
      if (!id || this.#chosen.get(source) !== id || !GONE.has(error?.name)) throw error;
    }
    this.#chosen.delete(source);
    return this.#acquire(source);
  }

  #acquire(source) {
    if (!navigator.mediaDevices) return Promise.reject(new Error("not a secure page"));
    const id = this.#chosen.get(source);
    const deviceId = id ? { exact: id } : undefined;
    if (source === "microphone") {
      const audio = { deviceId, channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
      return navigator.mediaDevices.getUserMedia({ audio }).then((stream) => stream.getAudioTracks()[0]);
    }
    if (source === "camera") {
      const video = { deviceId, width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 15, max: 30 } };
      return navigator.mediaDevices.getUserMedia({ video }).then((stream) => stream.getVideoTracks()[0]);
    }
    if (!navigator.mediaDevices.getDisplayMedia) {
      return Promise.reject(new Error("this browser cannot share a screen"));
    }
    return navigator.mediaDevices
      .getDisplayMedia({ video: { frameRate: { ideal: 5, max: 15 } }, audio: false })
      .then((stream) => {
        const [track] = stream.getVideoTracks();
        track.contentHint = "detail";
        return track;
      });
  }

  #letGo(source) {
    const track = this.#tracks.get(source);
    if (!track) return;
    this.#tracks.delete(source);
    track.stop(); // our own stop() fires no "ended"
    this.#tell("change", { source });
  }

  async #lost(source, track) {
    if (this.#tracks.get(source) !== track) return;
    this.close(source);
    if (source === "screen") {
      this.#tell("trouble", { source, words: "Your screen is not shared any more.", mild: true });
      return;
    }
    this.#chosen.delete(source);
    const others = await this.devices(source).catch(() => []);
    const next = others.length ? await this.open(source) : null;
    const words = next
      ? `The ${source} was disconnected. It goes on with “${next.label || "another one"}”.`
      : `The ${source} was disconnected. Connect one and switch it on again; what you write still arrives.`;
    this.#tell("trouble", { source, words, mild: Boolean(next) });
  }

  #tell(type, detail = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
