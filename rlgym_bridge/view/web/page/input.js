// Keys, mouse buttons and gamepads as the game's eight controls.
import { clamp } from "./math.js";

// The buttons of the page of keys say which actions there are, and the game's default keys.
export const ACTIONS = [...document.querySelectorAll("[data-action]")].map((button) => ({ button, action: button.dataset.action, key: button.dataset.default }));
const DEFAULTS = Object.fromEntries(ACTIONS.map(({ action, key }) => [action, key]));
const PAD = { jump: 0, boost: 1, powerslide: 2, ballCamera: 3, rollLeft: 4, rollRight: 5, back: 6, forward: 7 }; // "standard" pads
const STORED = "rlgym-bridge-keys", DEAD_ZONE = 0.15, KEEP_ALIVE_MS = 90, LOST_MS = 2000;
const NAMES = { Mouse0: "Left mouse", Mouse1: "Middle mouse", Mouse2: "Right mouse", ShiftLeft: "Left shift" };
export const nameOfKey = (code) => NAMES[code] ?? code.replace(/^(Key|Digit)/, "");
// Rescales a stick so that it begins at the dead zone's edge.
const stick = (value = 0) => Math.sign(value) * clamp((Math.abs(value) - DEAD_ZONE) / (1 - DEAD_ZONE), 0, 1);

// Returns the keys that were changed; none where the browser keeps nothing for this page.
function storedKeys() {
  try {
    return JSON.parse(localStorage.getItem(STORED));
  } catch {
    return {};
  }
}

export class Input {
  // `send` takes messages; `turnCamera` is called when the key of the ball camera is pressed.
  constructor(canvas, send, turnCamera) {
    Object.assign(this, { send, turnCamera, held: new Set(), seq: 0, last: "", sent: 0, driving: false, padName: null, padBefore: false, frames: [] });
    [this.waiting, this.lag, this.keys] = [new Map(), null, { ...DEFAULTS, ...storedKeys() }];
    const down = (code, event) => {
      if (!this.driving || event.repeat || event.target.closest?.("dialog, select")) return;
      if (Object.values(this.keys).includes(code)) event.preventDefault();
      if (code === this.keys.ballCamera) this.turnCamera();
      this.tell(performance.now(), this.held.add(code));
    };
    const up = (code) => this.held.delete(code) && this.tell(performance.now());
    addEventListener("keydown", (event) => down(event.code, event));
    addEventListener("keyup", (event) => up(event.code));
    canvas.addEventListener("mousedown", (event) => down(`Mouse${event.button}`, event));
    addEventListener("mouseup", (event) => up(`Mouse${event.button}`));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    addEventListener("blur", () => this.tell(performance.now(), this.held.clear()));
  }
  bind(action, code) {
    for (const other in this.keys) if (this.keys[other] === code) this.keys[other] = this.keys[action];
    this.keys[action] = code;
    localStorage.setItem(STORED, JSON.stringify(this.keys));
  }
  useDefaults() {
    this.keys = { ...DEFAULTS };
    localStorage.removeItem(STORED);
  }
  // Returns throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
  controls() {
    const pad = [...(navigator.getGamepads?.() ?? [])].find((one) => one?.connected && one.buttons.length >= 8);
    const on = (action) => Math.max(this.held.has(this.keys[action]) ? 1 : 0, pad?.buttons[PAD[action]]?.value ?? 0), press = (action) => (on(action) > 0.5 ? 1 : 0);
    const turned = (pad?.buttons[PAD.ballCamera]?.value ?? 0) > 0.5;
    if (turned && !this.padBefore) this.turnCamera();
    [this.padName, this.padBefore] = [pad?.id ?? null, turned];
    const throttle = on("forward") - on("back"), slide = press("powerslide"), held = (action) => (this.held.has(this.keys[action]) ? 1 : 0);
    const steer = clamp(held("right") - held("left") + stick(pad?.axes[0]), -1, 1), pitch = held("back") - held("forward") + stick(pad?.axes[1]);
    const roll = slide ? steer : press("rollRight") - press("rollLeft");
    return [throttle, steer, pitch, slide ? 0 : steer, roll, press("jump"), press("boost"), slide].map((value) => Math.round(clamp(value, -1, 1) * 1000) / 1000);
  }
  // Sends the controls when they change, and now and then while they do not.
  tell(now) {
    if (!this.driving) return;
    const controls = this.controls(), text = controls.join(), changed = text !== this.last;
    if (!changed && now - this.sent < KEEP_ALIVE_MS) return;
    [this.last, this.sent] = [text, now];
    this.send({ type: "input", seq: ++this.seq, controls });
    const newest = this.frames.at(-1);  // while a match is paused or waits, nothing acts
    if (changed && newest && !(newest.flags & 9)) this.waiting.set(this.seq, { began: now, tick: newest.tick });
  }
  // Notes how late inputs are: ms until they are seen, and ticks from the newest frame to the one in which they act.
  drawn(shown, now) {
    for (const [seq, { began, tick }] of this.waiting) {
      const acted = this.frames.find(({ inputSeq }) => inputSeq >= seq) ?? shown;
      if (seq <= shown.inputSeq) this.lag = { ms: now - began, ticks: acted.tick - tick };
      if (seq <= shown.inputSeq || now - began > LOST_MS) this.waiting.delete(seq);
    }
  }
}
