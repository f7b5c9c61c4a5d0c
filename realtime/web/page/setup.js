// The settings: which devices, which loudspeaker, which way to talk. In the lobby they are the page; in a call, a panel.

const SYSTEM = "The system's choice";

export class Setup {
  #at;
  #sources;
  #audio;

  /** `at` finds an element by its id, `audio` is the element that plays the reply. */
  constructor(at, sources, audio) {
    this.#at = at;
    this.#sources = sources;
    this.#audio = audio;
    if (!audio.setSinkId) at("source-speaker").hidden = true;
    for (const source of ["microphone", "camera"]) {
      at(`use-${source}`).addEventListener("click", () => this.#toggle(source));
      at(`pick-${source}`).addEventListener("change", ({ target }) => this.#pick(source, target.value));
    }
    at("try-microphone").addEventListener("click", () => sources.open("microphone"));
    at("pick-speaker").addEventListener("change", ({ target }) => audio.setSinkId(target.value).catch(() => {}));
    at("setup-close").addEventListener("click", () => this.open(false));
    at("settings").addEventListener("click", () => this.open(!at("setup").hasAttribute("data-open")));
    sources.addEventListener("devices", () => this.refresh());
    sources.addEventListener("change", ({ detail }) => this.#changed(detail.source));
    this.refresh();
  }

  /** Whether a source is switched on, had or not. */
  wants(source) {
    return this.#at(`use-${source}`).getAttribute("aria-checked") === "true";
  }

  want(source, on) {
    this.#at(`use-${source}`).setAttribute("aria-checked", String(on));
    this.#note(source, on ? "" : "Off.");
  }

  trouble(source, words) {
    if (!this.#at(`note-${source}`)) return;
    this.want(source, false);
    this.#note(source, words, "wrong");
  }

  /** Why a source could not be had, as long as that stands there; else nothing. */
  wrong(source) {
    const note = this.#at(`note-${source}`);
    return note.dataset.kind === "wrong" ? note.textContent : "";
  }

  /** Open or close the panel; focus goes in and comes back. */
  open(on) {
    const was = this.#at("setup").hasAttribute("data-open");
    this.#at("setup").toggleAttribute("data-open", on);
    this.#at("settings").setAttribute("aria-expanded", String(on));
    if (on && !was) this.#at("use-microphone").focus();
    else if (was && !on) this.#at("settings").focus();
    if (on) this.refresh();
  }

  /** Read the list of devices anew. */
  async refresh() {
    for (const source of ["microphone", "camera", "speaker"]) {
      const picker = this.#at(`pick-${source}`);
      let devices = [];
      try {
        devices = await this.#sources.devices(source);
      } catch {
        // A browser that does not tell has its own choice only.
      }
      const chosen = source === "speaker" ? (this.#audio.sinkId ?? "") : this.#sources.choice(source);
      const options = [{ id: "", name: SYSTEM }, ...devices];
      const same = picker.options.length === options.length && options.every((one, i) => picker.options[i].value === one.id);
      if (!same) picker.replaceChildren(...options.map(({ id, name }) => new Option(name, id)));
      picker.value = options.some(({ id }) => id === chosen) ? chosen : "";
    }
  }

  async #toggle(source) {
    const on = !this.wants(source);
    this.want(source, on);
    if (on) await this.#sources.open(source);
    else this.#sources.close(source);
  }

  async #pick(source, id) {
    await this.#sources.choose(source, id);
    if (!this.#sources.track(source) && this.wants(source)) await this.#sources.open(source);
  }

  #changed(source) {
    if (!this.#at(`use-${source}`)) return;
    const track = this.#sources.track(source);
    if (source === "microphone") {
      this.#at("try-microphone").hidden = Boolean(track);
    } else {
      this.#at("mirror-camera").hidden = !track;
      this.#at("mirror-camera").srcObject = track ? new MediaStream([track]) : null;
    }
    this.#at(`use-${source}`).setAttribute("aria-checked", String(Boolean(track)));
    this.#note(source, track ? "" : "Off.");
  }

  #note(source, words, kind = "") {
    const note = this.#at(`note-${source}`);
    note.textContent = words;
    note.dataset.kind = kind;
  }
}
