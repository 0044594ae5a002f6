// The bar at the bottom, the page of keys, and what the mouse does on the field.
import { add, minus, dot, project, sight } from "./math.js";
import { CAMERAS } from "./cameras.js";
import { LABELS, nameOfKey } from "./input.js";
import { byId, make, minutes, put, show } from "./hud.js";

const options = (id, pairs) => byId(id).replaceChildren(...pairs.map(([value, text]) => Object.assign(make("option", "", text), { value })));

// `app` has send, camera, input, follow(car), and what is shown: setup, frame, view, followed.
export class Panels {
  constructor(app) {
    this.app = app;
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    const command = (what, value) => app.send({ type: "command", do: what, ...(value === undefined ? {} : { value }) });
    this.command = command;
    on("pause", "click", () => command(app.frame?.flags & 1 ? "resume" : "pause"));
    on("speed", "change", () => command("speed", Number(byId("speed").value)));
    for (const what of ["kickoff", "reset", "save"]) on(what, "click", () => command(what));
    on("rewind", "input", () => put("rewind-time", `${byId("rewind").value} s`));
    on("rewind", "change", () => {
      if (Number(byId("rewind").value)) command("rewind", Number(byId("rewind").value));
      byId("rewind").value = 0;
      put("rewind-time", "0 s");
    });
    on("scrub", "input", () => command("seek", Number(byId("scrub").value)));
    on("camera", "change", () => app.camera.choose(byId("camera").value));
    on("follow", "change", () => app.follow(byId("follow").value === "" ? null : Number(byId("follow").value)));
    on("driver", "change", () => {
      const driver = byId("driver").value;
      if (driver === "give") command("give", app.setup.mode === "view" ? -1 : app.followed);
      else if (driver) command("take", { car: app.followed, driver });
      byId("driver").value = "";
    });
    on("help", "click", () => this.showKeys());
    on("defaults", "click", () => [app.input.useDefaults(), this.showKeys()]);
    for (const id of ["speed", "camera", "follow", "driver"]) on(id, "change", () => byId(id).blur());
    for (const button of document.querySelectorAll("#bar button")) button.addEventListener("click", () => button.blur());
    addEventListener("keydown", (event) => this.key(event));
    options("camera", Object.entries(CAMERAS));
    this.mouse(app.canvas);
  }

  setup({ mode, cars, policies = [], length_s: length, take_over: may, seat, local }) {
    const playing = mode === "play", free = may ?? playing;
    for (const id of ["kickoff", "reset", "save", "rewind-of"]) show(id, playing);
    for (const id of ["pause", "speed"]) show(id, playing || mode === "view");
    show("scrub-of", length !== null && length !== undefined);
    show("driver", free && !local);
    show("bar", true);
    byId("scrub").max = length ?? 1;
    options("follow", [["", "No car"], ...cars.map(({ name }, i) => [i, name])]);
    options("driver", [["", "Take over ..."], ["human", "Drive it myself"], ["give", mode === "view" ? "Back to the recording" : "Give it back"], ...policies.map((name) => [name, `Let ${name} drive`])]);
    this.free = free && !local;
    if (seat !== null && seat !== undefined) this.showHint();
  }

  showHint() {
    const { keys } = this.app.input, text = ["forward", "back", "left", "right", "jump", "boost", "powerslide", "ballCamera"];
    byId("keys-shown").replaceChildren(...text.map((action) => {
      const row = make("span", "", LABELS[action].split(",")[0]);
      row.prepend(make("kbd", "", nameOfKey(keys[action])));
      return row;
    }));
    clearTimeout(this.hint);
    this.hint = setTimeout(() => byId("keys-shown").replaceChildren(), 12000);
  }

  showKeys() {
    const { input } = this.app;
    put("pad", input.padName ? `Gamepad: ${input.padName}` : "Gamepad: none found. Press a button on it.");
    byId("bindings").replaceChildren(...Object.entries(LABELS).map(([action, label]) => {
      const row = make("label", "", label), button = make("button", "", nameOfKey(input.keys[action]));
      button.addEventListener("click", () => {
        button.textContent = "press ...";
        const finish = (code) => (event) => {
          if (event.type === "keydown" || event.target !== button) event.preventDefault();
          for (const [kind, act] of heard) removeEventListener(kind, act, true);
          if (code(event) !== "Escape") input.bind(action, code(event));
          this.showKeys();
        };
        const heard = [["keydown", finish((event) => event.code)], ["mousedown", finish((event) => `Mouse${event.button}`)]];
        for (const [kind, act] of heard) addEventListener(kind, act, true);
      });
      row.append(button);
      return row;
    }));
    if (!byId("keys").open) byId("keys").showModal();
  }

  key(event) {
    const { app } = this, { code } = event, bound = app.input.driving && Object.values(app.input.keys).includes(code);
    if (event.target.closest("dialog, select") || event.repeat || event.ctrlKey || event.metaKey || bound) return;
    const act = { KeyP: "pause", KeyK: "kickoff", KeyR: "reset", F5: "save", F1: "help" }[code] ?? (code === "Space" ? "pause" : null);
    if (act && !byId(act).hidden) [event.preventDefault(), byId(act).click()];
    const kinds = Object.keys(CAMERAS), car = /^Digit([1-8])$/.exec(code)?.[1];
    if (code === "KeyC") app.camera.choose(kinds[(kinds.indexOf(app.camera.kind) + 1) % kinds.length]);
    if (car && car <= app.setup.cars.length) app.follow(car - 1);
  }

  // Turns the free camera; while a match is paused, drags ball and cars over the floor (with shift: up and down).
  mouse(canvas) {
    const { app } = this, spot = (event) => [(event.clientX / innerWidth) * 2 - 1, 1 - (event.clientY / innerHeight) * 2];
    const bodies = () => [["ball", app.frame.ball.pos, 130], ...app.frame.cars.map((car, i) => [i, car.pos, 110])];
    const at = (event) => bodies().find(([, pos, size]) => {
      const [x, y] = spot(event), ray = sight(app.view, x, y), to = minus(pos, app.view.pos), along = dot(to, ray);
      return along > 0 && Math.hypot(...add(to, ray, -along)) < Math.max(size, along * 0.012);
    });
    let turning = false, held = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (!app.frame) return;
      held = this.free && app.frame.flags & 1 ? at(event) ?? null : null;
      turning = !held && (!app.input.driving || app.frame.flags & 1);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (held) this.drag(held, spot(event), event);
      else if (turning) app.camera.orbit(event.movementX, event.movementY);
      if (turning && Math.hypot(event.movementX, event.movementY) > 1 && app.camera.kind !== "free" && app.camera.kind !== "top") app.camera.choose("free");
      canvas.style.cursor = held ? "grabbing" : this.free && app.frame?.flags & 1 && at(event) ? "grab" : "";
    });
    canvas.addEventListener("pointerup", () => ([turning, held] = [false, null]));
    canvas.addEventListener("wheel", (event) => (app.camera.zoom = Math.min(12000, Math.max(300, app.camera.zoom * Math.exp(event.deltaY * 0.001)))), { passive: true });
  }

  drag(held, [x, y], event) {
    const { view } = this.app, ray = sight(view, x, y), [body, pos] = held, now = performance.now();
    const up = event.shiftKey, part = up ? 0 : (pos[2] - view.pos[2]) / ray[2];
    const to = up ? [pos[0], pos[1], Math.min(1900, Math.max(17, pos[2] - event.movementY * 3))] : add(view.pos, ray, part);
    if (!(part >= 0)) return;
    const inside = [Math.min(4000, Math.max(-4000, to[0])), Math.min(5000, Math.max(-5000, to[1])), to[2]];
    if (now - (this.dragged ?? 0) > 30) [this.dragged] = [now, this.command("put", { body, pos: inside })];
    held[1] = inside;
  }

  draw(frame) {
    const paused = frame.flags & 1, kind = this.app.camera.kind;
    byId("pause").className = paused ? "go" : "";
    if (document.activeElement !== byId("scrub")) byId("scrub").value = frame.time;
    put("scrub-time", minutes(frame.time));
    if (byId("camera").value !== kind) byId("camera").value = kind;
    const followed = this.app.followed ?? "";
    if (byId("follow").value !== String(followed)) byId("follow").value = followed;
    byId("driver").disabled = followed === "";
  }
}
