// The bar at the bottom, the page of keys, and what the mouse does on the field.
import { byId, make, minutes, put, show } from "./hud.js";
import { ACTIONS, nameOfKey } from "./input.js";
import { add, clamp, dot, minus, sight } from "./math.js";

const options = (id, pairs) => byId(id).replaceChildren(...pairs.map(([value, text]) => Object.assign(make("option", "", text), { value })));
const HOTKEYS = { KeyP: "pause", KeyK: "kickoff", KeyR: "reset", F9: "save", F1: "help", Space: "pause" };

// `app` has command, camera, input, follow(car), and what is shown: setup, frame, view, followed.
export class Panels {
  constructor(app) {
    this.app = app;
    const on = (id, event, act) => byId(id).addEventListener(event, () => act(byId(id).value, byId(id)));
    on("pause", "click", () => app.command(app.frame?.flags & 1 ? "resume" : "pause"));
    for (const what of ["kickoff", "reset", "save"]) on(what, "click", () => app.command(what));
    on("speed", "change", (speed) => app.command("speed", Number(speed)));
    on("scrub", "input", (time) => app.command("seek", Number(time)));
    on("rewind", "input", (seconds) => put("rewind-time", `${seconds} s`));
    on("rewind", "change", (seconds, slider) => {
      if (Number(seconds)) app.command("rewind", Number(seconds));
      slider.value = 0;
      put("rewind-time", "0 s");
    });
    on("camera", "change", (kind) => app.camera.choose(kind));
    on("follow", "change", (car) => app.follow(car === "" ? null : Number(car)));
    on("driver", "change", (driver, list) => {
      if (driver === "give") app.command("give", app.setup.mode === "view" ? -1 : app.followed);
      else app.command("take", { car: app.followed, driver });
      list.value = "";
    });
    on("help", "click", () => this.showKeys());
    on("defaults", "click", () => [app.input.useDefaults(), this.showKeys()]);
    for (const part of document.querySelectorAll("#bar button, #bar select, #bar input")) // keys belong to the car again
      for (const event of ["click", "change"]) part.addEventListener(event, () => part.tagName === "SELECT" && event === "click" || part.blur());
    addEventListener("keydown", (event) => this.key(event));
    for (const { button, action } of ACTIONS) button.onclick = () => this.listen(button, action);
    this.mouse(app.canvas);
  }
  setup({ mode, cars, policies = [], length_s: length, take_over: may, seat, local }) {
    const playing = mode === "play", names = cars.map(({ name }, i) => [i, name]);
    this.free = (may ?? playing) && !local;
    for (const id of ["kickoff", "reset", "save", "rewind-of"]) show(id, playing);
    for (const id of ["pause", "speed"]) show(id, playing || mode === "view");
    show("scrub-of", length);
    show("driver", this.free);
    show("bar", true);
    byId("scrub").max = length || 1;
    byId("speed").options[0].hidden = playing; // only recordings go faster
    options("follow", [["", "No car"], ...names]);
    const back = ["give", mode === "view" ? "Back to the recording" : "Give it back"];
    options("driver", [["", "Take over ..."], ["human", "Drive it myself"], back, ...policies.map((name) => [name, `Let ${name} drive`])]);
    if (Number.isInteger(seat)) this.showHint();
  }
  showHint() {
    const { keys } = this.app.input, row = ({ button, action }) => make("span", "", make("kbd", "", nameOfKey(keys[action])), button.parentNode.firstChild.data.split(",")[0]);
    byId("keys-shown").replaceChildren(...ACTIONS.filter(({ action }) => !action.startsWith("roll")).map(row));
    clearTimeout(this.hint);
    this.hint = setTimeout(() => byId("keys-shown").replaceChildren(), 12000);
  }
  showKeys() {
    const { keys, padName } = this.app.input;
    put("pad", `Gamepad: ${padName ?? "none found. Press a button on it."}`);
    for (const { button, action } of ACTIONS) button.textContent = nameOfKey(keys[action]);
    if (!byId("keys").open) byId("keys").showModal();
  }
  // Waits for the new key of an action.
  listen(button, action) {
    const heard = new AbortController(), wait = { capture: true, signal: heard.signal };
    const finish = (event, code) => {
      event.preventDefault();
      heard.abort();
      if (code !== "Escape") this.app.input.bind(action, code);
      this.showKeys();
    };
    button.textContent = "press ...";
    addEventListener("keydown", (event) => finish(event, event.code), wait);
    addEventListener("mousedown", (event) => finish(event, `Mouse${event.button}`), wait);
  }
  key(event) {
    const { app } = this, { code } = event, kinds = [...byId("camera").options].map(({ value }) => value), car = Number(/^Digit([1-8])$/.exec(code)?.[1]) - 1;
    const bound = app.input.driving && Object.values(app.input.keys).includes(code);
    if (!app.setup || bound || event.repeat || event.ctrlKey || event.metaKey || event.target.closest("dialog, select")) return;
    if (code in HOTKEYS && !byId(HOTKEYS[code]).hidden) [event.preventDefault(), byId(HOTKEYS[code]).click()];
    if (code === "KeyC") app.camera.choose(kinds[(kinds.indexOf(app.camera.kind) + 1) % kinds.length]);
    if (car < app.setup.cars.length) app.follow(car);
  }
  // Turns the free camera; while a match is paused, drags ball and cars over the floor (with shift: up and down).
  mouse(canvas) {
    const { app } = this, paused = () => app.frame?.flags & 1;
    const ray = (event) => sight(app.view, (event.clientX / innerWidth) * 2 - 1, 1 - (event.clientY / innerHeight) * 2);
    const at = (event) => [["ball", app.frame.ball.pos, 130], ...app.frame.cars.map((car, i) => [i, car.pos, 110])].find(([, pos, size]) => {
      const to = minus(pos, app.view.pos), along = dot(to, ray(event));
      return along > 0 && Math.hypot(...add(to, ray(event), -along)) < Math.max(size, along * 0.012);
    });
    let turning = false, held = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (!app.frame) return;
      held = this.free && paused() ? at(event) ?? null : null;
      turning = !held && (!app.input.driving || paused());
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (held) this.drag(held, ray(event), event);
      else if (turning && Math.hypot(event.movementX, event.movementY) > 1) app.camera.orbit(event.movementX, event.movementY);
      canvas.style.cursor = held ? "grabbing" : this.free && paused() && at(event) ? "grab" : "";
    });
    canvas.addEventListener("pointerup", () => ([turning, held] = [false, null]));
    canvas.addEventListener("wheel", (event) => app.camera.nearer(event.deltaY), { passive: true });
  }
  drag(held, ray, event) {
    const { pos: eye } = this.app.view, [body, pos] = held, part = event.shiftKey ? 0 : (pos[2] - eye[2]) / ray[2], now = performance.now();
    if (!(part >= 0)) return;
    const to = event.shiftKey ? add(pos, [0, 0, -3 * event.movementY]) : add(eye, ray, part);
    held[1] = [clamp(to[0], -4000, 4000), clamp(to[1], -5000, 5000), clamp(to[2], 17, 1900)];
    if (now - (this.dragged ?? 0) > 30) [this.dragged] = [now, this.app.command("put", { body, pos: held[1] })];
  }
  draw(frame) {
    const set = (id, value) => document.activeElement === byId(id) || byId(id).value === String(value) || (byId(id).value = value);
    byId("pause").className = frame.flags & 1 ? "go" : "";
    set("scrub", frame.time);
    put("scrub-time", minutes(frame.time));
    set("camera", this.app.camera.kind);
    set("follow", this.app.followed ?? "");
    byId("driver").disabled = this.app.followed === null;
  }
}
