// What has been heard: the newest piece of the reply stream that left for the loudspeaker, reported to the server.
//
// The browser tells the RTP timestamp of the last piece that it gave to the audio output; the server knows which of these
// carried which part of which reply. What the output itself still holds back goes along as a delay.

const WHILE_HEARD_MS = 100;
const ELSE_MS = 500;
const QUIET = 0.0005; // an amplitude below which nothing sounds

export class Playout {
  #receiver = null;
  #send;
  #delay;
  #silent;
  #timer = 0;
  #sentAt = -Infinity;
  #stamp = -1;
  #level = 0;
  #wasLoud = false;

  /**
   * `send` takes {rtp_timestamp, age_ms, delay_ms}; `delay` gives the output's latency in seconds; `silent` tells whether
   * the page may play nothing at all: the browser's receiver goes on then, and nobody hears it.
   */
  constructor(send, delay, silent) {
    this.#send = send;
    this.#delay = delay;
    this.#silent = silent;
  }

  /** Follow a receiver; null: none. */
  use(receiver) {
    clearInterval(this.#timer);
    this.#receiver = receiver;
    this.#stamp = -1;
    this.#level = 0;
    if (receiver) this.#timer = setInterval(() => this.#look(), WHILE_HEARD_MS);
  }

  /** The reply's level, 0–1, as an amplitude. */
  get level() {
    return this.#level;
  }

  async #look() {
    const receiver = this.#receiver;
    const [source] = receiver.getSynchronizationSources();
    if (source && this.#silent()) this.#standStill(source);
    else if (source) this.#report(source);
    const report = await receiver.getStats().catch(() => null);
    if (!report || receiver !== this.#receiver) return;
    for (const one of report.values()) {
      if (one.type === "inbound-rtp") this.#level = one.audioLevel ?? 0;
    }
  }

  /** Nothing is heard: the place where that began is reported again and again. */
  #standStill({ rtpTimestamp }) {
    const now = performance.now();
    if (this.#stamp < 0) this.#stamp = rtpTimestamp;
    if (now - this.#sentAt < ELSE_MS) return;
    this.#sentAt = now;
    this.#send({ rtp_timestamp: this.#stamp, age_ms: 0, delay_ms: 0 });
  }

  #report(source) {
    const now = performance.now();
    const loud = this.#level > QUIET;
    const due = loud || this.#wasLoud || now - this.#sentAt >= ELSE_MS; // its last piece too
    if (source.rtpTimestamp === this.#stamp || !due) return;
    this.#wasLoud = loud;
    this.#stamp = source.rtpTimestamp;
    this.#sentAt = now;
    const then = source.timestamp > 1e11 ? source.timestamp - performance.timeOrigin : source.timestamp;
    this.#send({
      rtp_timestamp: source.rtpTimestamp,
      age_ms: Math.max(0, Math.round(now - then)),
      delay_ms: Math.round((this.#delay() || 0) * 1000),
    });
  }
}
