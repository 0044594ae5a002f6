// The page: a connection or a recording, a picture, and what stands over it.
import { Camera } from "./cameras.js";
import { Timeline } from "./frames.js";
import { byId, Hud, put, show } from "./hud.js";
import { Input } from "./input.js";
import { Panels } from "./panels.js";
import { Recorded } from "./recording.js";
import { Renderer } from "./renderer.js";

const ASLEEP_MS = 500, RETRY_MS = [250, 500, 1000, 2000], FINAL = [1001, 1008, 1009]; // closing codes: it has ended, or this page is refused

// The server's frames and messages; it connects again when the connection is lost.
class Connection extends Timeline {
  constructor(receive, say) {
    super();
    Object.assign(this, { receive, say, failed: 0 });
    this.open();
  }
  open() {
    const address = Object.assign(new URL("ws", location.href), { search: location.search });
    address.protocol = address.protocol.replace("http", "ws");
    this.socket = Object.assign(new WebSocket(address), { binaryType: "arraybuffer" });
    this.socket.onmessage = ({ data }) => (typeof data === "string" ? this.receive(JSON.parse(data)) : this.push(data, performance.now()));
    this.socket.onopen = () => ([this.failed] = [0, this.say("")]);
    this.socket.onclose = ({ code, reason }) => {
      const final = FINAL.includes(code);
      this.say(final ? `Closed: ${reason}` : `${reason || "The match does not answer"}; trying again ...`, "error", 0);
      this.clear();
      if (!final) setTimeout(() => this.open(), RETRY_MS[Math.min(this.failed++, 3)]);
    };
  }
  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}

class App {
  constructor() {
    Object.assign(this, { canvas: byId("scene"), hud: new Hud(), camera: new Camera(), setup: null, frame: null, view: null, followed: null });
    Object.assign(this, { ready: false, costs: [], busy: 0, rate: 60, last: null, counted: 0, sharpened: null }); // ms of JavaScript a picture
    this.renderer = new Renderer(this.canvas);
    this.input = new Input(this.canvas, (message) => this.source.send(message), () => this.camera.choose(this.camera.kind === "ball" ? "chase" : "ball"));
    this.panels = new Panels(this);
    const receive = (message) => this.receive(message), text = window.RECORDING;
    this.source = text ? new Recorded(text, receive) : new Connection(receive, (...what) => this.hud.say(...what));
    this.canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.canvas.addEventListener("webglcontextrestored", () => [(this.renderer = new Renderer(this.canvas)), this.setup && this.renderer.setup(this.setup)]);
    document.addEventListener("visibilitychange", () => document.hidden && this.sleep(0));
    requestAnimationFrame((now) => this.step(now));
  }
  phase() {
    return this.setup?.phases[this.frame?.phase];
  }
  command(what, value) {
    this.source.send({ type: "command", do: what, value });
  }
  receive(message) {
    const { type, text, level, event } = message;
    if (type === "setup") this.begin(message);
    else if (type === "say" || (type === "event" && text && event !== "kickoff")) this.hud.say(text, level);
    else if (type === "stats") this.stats = message;
    else if (type === "mind" && message.car === this.followed) this.hud.mind(message, this.setup.cars[message.car].name);
    else if (type === "curves") this.hud.curves(message);
  }
  begin(setup) {
    const seat = setup.seat ?? null, first = this.setup === null, taken = seat !== null && seat !== this.setup?.seat;
    [this.setup, this.ready, this.input.driving] = [setup, false, seat !== null];
    for (const part of [this.renderer, this.hud, this.panels]) part.setup(setup);
    document.body.className = setup.mode;
    document.title = setup.title ? `${setup.title} - rlgym-bridge` : "rlgym-bridge";
    if (this.followed >= setup.cars.length) this.followed = null;
    if (taken) [this.camera.choose("ball"), this.follow(seat)];
    else if (first && setup.mode === "view" && setup.cars.length) this.follow(0);
    else this.follow(this.followed); // the server of a new connection does not know
  }
  follow(car) {
    if (this.followed === null && car !== null && !this.input.driving) this.camera.choose("chase");
    this.followed = car;
    show("mind", false); // until there is one of this car, and of its driver
    this.command("follow", car ?? -1);
  }
  // Asks the match to wait until this page draws again.
  sleep(seconds) {
    if (!this.input.driving) return;
    this.command("stall", seconds);
    this.ready = false;
  }
  step(now) {
    requestAnimationFrame((next) => this.step(next));
    this.counted ||= now;
    const began = performance.now(), seconds = this.last === null ? 0 : (now - this.last) / 1000;
    if (seconds * 1000 > ASLEEP_MS) [this.sleep(seconds), this.source.clear()];
    this.last = now;
    const frame = this.setup && this.source.sample(now), { kind } = this.camera;
    if (frame?.cars.length !== this.setup?.cars.length || !frame) return;
    this.frame = frame;
    this.input.frames = this.source.frames;
    this.input.tell(now);
    this.camera.update(frame, this.followed === null ? null : frame.cars[this.followed], Math.min(seconds, 0.1));
    this.view = this.renderer.draw(frame, this.camera, now / 1000, this.followed);
    this.hud.draw(frame, this.view, this.followed, kind === "chase" || kind === "ball");
    this.panels.draw(frame);
    this.input.drawn(frame, performance.now());
    if (!this.ready) [this.ready] = [true, this.command("ready")];
    this.costs.push(performance.now() - began);
    if (now - this.counted > 1000) this.count(now);
  }
  // Shows how fast all is, and draws fewer points where the machine is slow.
  count(now) {
    const { lag, driving } = this.input, { speed } = this.frame, ticks = speed && this.stats?.ticks_s;
    [this.busy, this.rate] = [this.costs.sort((a, b) => a - b)[this.costs.length >> 1], (1000 * this.costs.length) / (now - this.counted)];
    [this.counted, this.costs] = [now, []];
    put("numbers", [
      `${this.rate.toFixed(0)} fps`, `${this.busy.toFixed(1)} ms`, ...(ticks ? [`${Math.round(ticks)} ticks/s`] : []),
      ...(lag && driving && speed ? [`input ${lag.ticks} tick${lag.ticks === 1 ? '' : 's'}, ${lag.ms.toFixed(0)} ms`] : []),
    ].join("  ·  "));
    const slow = this.rate < 27 && now > (this.sharpened ?? now);
    if (slow) this.renderer.scale = Math.max(0.45, this.renderer.scale * 0.88);
    if (slow || this.sharpened === null) this.sharpened = now + 2000;
  }
}

try {
  window.app = new App();
} catch (error) {
  new Hud().say(error.message, "error", 0);
}
