// How loud it is: the microphone's level, and a quiet picture of both voices over the last seconds.

const SECONDS = 8;
const STEPS_A_SECOND = 20;
const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** The level of one track, 0–1, read when asked for. */
export class Level {
  #context = null;
  #analyser = null;
  #node = null;
  #samples = null;

  /** Listen to a track; null: to none. */
  use(track) {
    this.#node?.disconnect();
    this.#node = null;
    if (!track) return;
    this.#context ??= new AudioContext();
    this.resume();
    if (!this.#analyser) {
      this.#analyser = this.#context.createAnalyser();
      this.#analyser.fftSize = 1024;
      this.#samples = new Float32Array(1024);
    }
    this.#node = this.#context.createMediaStreamSource(new MediaStream([track]));
    this.#node.connect(this.#analyser);
  }

  /** After a gesture: browsers hold contexts that began without one. */
  resume() {
    if (this.#context?.state === "suspended") this.#context.resume().catch(() => {});
  }

  /** What the audio output holds back, in seconds, where the browser tells. */
  get outputLatency() {
    return this.#context?.outputLatency ?? 0;
  }

  read() {
    if (!this.#node) return 0;
    this.#analyser.getFloatTimeDomainData(this.#samples);
    let sum = 0;
    for (const sample of this.#samples) sum += sample * sample;
    return loudness(Math.sqrt(sum / this.#samples.length));
  }
}

/** −50 to −2 dB as 0 to 1: what an ear makes of it. */
export function loudness(amplitude) {
  return amplitude <= 0.003 ? 0 : Math.min(1, Math.max(0, (20 * Math.log10(amplitude) + 50) / 48));
}

/** Two voices along a line of time: yours above it, the reply below it. */
export class Voices {
  #canvas;
  #read;
  #yours = new Float32Array(SECONDS * STEPS_A_SECOND);
  #replies = new Float32Array(SECONDS * STEPS_A_SECOND);
  #timer = 0;

  /** `read` gives {yours, reply}, each 0–1; it is called 20 times a second while the call runs. */
  constructor(canvas, read) {
    this.#canvas = canvas;
    this.#read = read;
  }

  start() {
    this.stop();
    this.#timer = setInterval(() => this.#step(), 1000 / STEPS_A_SECOND);
  }

  stop() {
    clearInterval(this.#timer);
    this.#yours.fill(0);
    this.#replies.fill(0);
    this.#draw();
  }

  #step() {
    const { yours, reply } = this.#read();
    for (const [line, level] of [[this.#yours, yours], [this.#replies, reply]]) {
      line.copyWithin(0, 1);
      line[line.length - 1] = Math.max(level, line[line.length - 2] * 0.55);
    }
    if (!document.hidden) this.#draw();
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (!width) return;
    const scale = Math.min(2, devicePixelRatio || 1);
    if (this.#canvas.width !== Math.round(width * scale)) this.#canvas.width = Math.round(width * scale);
    if (this.#canvas.height !== Math.round(height * scale)) this.#canvas.height = Math.round(height * scale);
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const colors = getComputedStyle(document.documentElement);
    const middle = height / 2;
    pen.fillStyle = colors.getPropertyValue("--line");
    pen.fillRect(0, middle - 0.5, width, 1);
    const still = reduced.matches; // no river of bars: two that change in place
    const steps = still ? 1 : this.#yours.length;
    const gap = width / steps;
    const bar = still ? Math.min(width, 160) : Math.max(1.5, gap - 1.8);
    for (const [line, sign, color] of [[this.#yours, -1, "--you"], [this.#replies, 1, "--reply"]]) {
      pen.fillStyle = colors.getPropertyValue(color);
      for (let step = 0; step < steps; step += 1) {
        const level = still ? line[line.length - 1] : line[step];
        if (level < 0.03) continue;
        const tall = Math.max(1.5, level * (middle - 2));
        const left = still ? (width - bar) / 2 : step * gap;
        pen.globalAlpha = still ? 1 : 0.25 + (0.75 * step) / steps;
        pen.beginPath();
        pen.roundRect(left, sign < 0 ? middle - 1.5 - tall : middle + 1.5, bar, tall, Math.min(bar / 2, 2));
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
  }
}
