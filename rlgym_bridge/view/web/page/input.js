// Keys, mouse buttons and gamepads as the game's eight controls.
import { clamp } from "./math.js";

// The game's defaults on a PC, by the browser's names of keys; Mouse0 is the left button, Mouse2 the right one.
export const DEFAULTS = {
  forward: "KeyW", back: "KeyS", left: "KeyA", right: "KeyD", jump: "Mouse2", boost: "Mouse0", powerslide: "ShiftLeft",
  rollLeft: "KeyQ", rollRight: "KeyE", ballCamera: "Space",
};
export const LABELS = {
  forward: "Throttle, nose down", back: "Reverse, nose up", left: "Steer left", right: "Steer right", jump: "Jump, dodge",
  boost: "Boost", powerslide: "Powerslide, air roll", rollLeft: "Air roll left", rollRight: "Air roll right", ballCamera: "Ball camera",
};
const STORED = "rlgym-bridge-keys", DEAD_ZONE = 0.15, KEEP_ALIVE_MS = 90;
const PAD = { jump: 0, boost: 1, powerslide: 2, ballCamera: 3, rollLeft: 4, rollRight: 5, back: 6, forward: 7 }; // "standard" pads

export const nameOfKey = (code) => ({ Mouse0: "Left mouse", Mouse1: "Middle mouse", Mouse2: "Right mouse", ShiftLeft: "Left shift" })[code] ?? code.replace(/^(Key|Digit)/, "");

// Rescales a stick so that it begins at the dead zone's edge.
export const outsideDeadZone = (value) => (Math.abs(value) < DEAD_ZONE ? 0 : clamp((Math.sign(value) * (Math.abs(value) - DEAD_ZONE)) / (1 - DEAD_ZONE), -1, 1));

export class Input {
  // `send` takes {seq, controls}; `press` takes the name of an action that is no control, such as ballCamera.
  constructor(canvas, send, press) {
    Object.assign(this, { send, press, held: new Set(), seq: 0, last: "", sent: 0, driving: false, padName: null, padBefore: false, waiting: new Map(), lag: null });
    try {
      this.keys = { ...DEFAULTS, ...JSON.parse(localStorage.getItem(STORED)) };
    } catch {
      this.keys = { ...DEFAULTS };
    }
    const typing = (event) => event.target.closest?.("dialog, input, select");
    const down = (code, event) => {
      if (!this.driving || typing(event) || event.repeat) return;
      if (Object.values(this.keys).includes(code)) event.preventDefault();
      if (code === this.keys.ballCamera) this.press("ballCamera");
      this.held.add(code);
      this.tell(performance.now());
    };
    const up = (code) => this.held.delete(code) && this.driving && this.tell(performance.now());
    addEventListener("keydown", (event) => down(event.code, event));
    addEventListener("keyup", (event) => up(event.code));
    canvas.addEventListener("mousedown", (event) => down(`Mouse${event.button}`, event));
    addEventListener("mouseup", (event) => up(`Mouse${event.button}`));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    addEventListener("blur", () => this.release());
  }

  release() {
    this.held.clear();
    if (this.driving) this.tell(performance.now());
  }

  bind(action, code) {
    for (const other of Object.keys(this.keys)) if (this.keys[other] === code) this.keys[other] = this.keys[action];
    this.keys[action] = code;
    localStorage.setItem(STORED, JSON.stringify(this.keys));
  }

  useDefaults() {
    this.keys = { ...DEFAULTS };
    localStorage.removeItem(STORED);
  }

  pad() {
    const pad = [...(navigator.getGamepads?.() ?? [])].find((one) => one?.connected && one.buttons.length >= 8);
    this.padName = pad?.id ?? null;
    if (!pad) return null;
    const value = (name) => pad.buttons[PAD[name]]?.value ?? 0, pressed = value("ballCamera") > 0.5;
    if (pressed && !this.padBefore) this.press("ballCamera");
    this.padBefore = pressed;
    return { value, x: outsideDeadZone(pad.axes[0] ?? 0), y: outsideDeadZone(pad.axes[1] ?? 0) };
  }

  // Returns throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
  controls() {
    const on = (action) => (this.held.has(this.keys[action]) ? 1 : 0), pad = this.pad(), padOn = (name) => (pad?.value(name) ?? 0);
    const either = (name) => Math.max(on(name), padOn(name) > 0.5 ? 1 : 0), whole = (value) => Math.round(clamp(value, -1, 1) * 1000) / 1000;
    const throttle = on("forward") - on("back") + padOn("forward") - padOn("back");
    const steer = clamp(on("right") - on("left") + (pad?.x ?? 0), -1, 1), pitch = on("back") - on("forward") + (pad?.y ?? 0);
    const slide = either("powerslide"), roll = slide ? steer : either("rollRight") - either("rollLeft");
    return [throttle, steer, pitch, slide ? 0 : steer, roll, either("jump"), either("boost"), slide].map(whole);
  }

  // Sends the controls when they change, and now and then while they do not.
  tell(now, tick = this.tick) {
    this.tick = tick;
    if (!this.driving) return;
    const controls = this.controls(), text = controls.join();
    if (text === this.last && now - this.sent < KEEP_ALIVE_MS) return;
    this.seq += 1;
    if (text !== this.last) this.waiting.set(this.seq, { now, tick });
    [this.last, this.sent] = [text, now];
    this.send({ type: "input", seq: this.seq, controls });
  }

  // Notes which input has acted in the frame that is drawn: how late, in ms and ticks.
  drawn(frame, now) {
    for (const [seq, { now: began, tick }] of this.waiting)
      if (seq <= frame.inputSeq) {
        this.lag = { ms: now - began, ticks: frame.tick - tick };
        this.waiting.delete(seq);
      } else if (now - began > 2000) this.waiting.delete(seq);
  }
}
