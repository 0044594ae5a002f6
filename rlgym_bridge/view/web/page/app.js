// The page: a connection or a recording, a picture, and what stands over it.
import { Camera } from "./cameras.js";
import { Timeline } from "./frames.js";
import { byId, Hud, put } from "./hud.js";
import { Input } from "./input.js";
import { Panels } from "./panels.js";
import { Recorded } from "./recording.js";
import { Renderer } from "./renderer.js";

const ASLEEP_MS = 500, RETRY_MS = [250, 500, 1000, 2000];

// The server's frames and messages; it connects again when the connection is lost.
class Connection {
  constructor(receive, say) {
    Object.assign(this, { receive, say, timeline: new Timeline(), failed: 0 });
    this.open();
  }

  open() {
    const address = new URL("ws", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.search = location.search;
    this.socket = Object.assign(new WebSocket(address), { binaryType: "arraybuffer" });
    this.socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.receive(JSON.parse(data));
      else this.timeline.push(data, performance.now());
    };
    this.socket.onopen = () => ([this.failed] = [0, this.say("")]);
    this.socket.onclose = ({ code, reason }) => {
      const refused = code === 1008 || code === 1009;
      this.say(refused ? `The match closed the connection: ${reason}` : "The match does not answer; trying again ...", "error", 0);
      this.timeline.clear();
      if (!refused) setTimeout(() => this.open(), RETRY_MS[Math.min(this.failed++, 3)]);
    };
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  sample(now) {
    return this.timeline.sample(now);
  }
}

class App {
  constructor() {
    Object.assign(this, { canvas: byId("scene"), hud: new Hud(), camera: new Camera(), setup: null, frame: null, view: null, followed: null, ready: false, busy: 0, rate: 0, last: null });
    this.renderer = new Renderer(this.canvas);
    this.input = new Input(this.canvas, (message) => this.send(message), () => this.camera.choose(this.camera.kind === "ball" ? "chase" : "ball"));
    this.panels = new Panels(this);
    const receive = (message) => this.receive(message);
    this.source = window.RECORDING ? new Recorded(window.RECORDING, receive) : new Connection(receive, (...what) => this.hud.say(...what));
    document.addEventListener("visibilitychange", () => document.hidden && this.sleep(0));
    requestAnimationFrame((now) => this.step(now));
  }

  send(message) {
    this.source.send(message);
  }

  receive(message) {
    const { type } = message;
    if (type === "setup") this.begin(message);
    else if (type === "say") this.hud.say(message.text, message.level);
    else if (type === "event" && message.text) this.hud.say(message.text);
    else if (type === "stats") this.stats = message;
    else if (type === "mind") this.hud.mind(message, this.setup?.cars[message.car]?.name);
    else if (type === "curves") this.hud.curves(message);
  }

  begin(setup) {
    const seat = setup.seat ?? null, first = this.setup === null, taken = seat !== null && seat !== this.setup?.seat;
    [this.setup, this.ready, this.input.driving] = [setup, false, seat !== null];
    this.renderer.setup(setup);
    this.hud.setup(setup);
    this.panels.setup(setup);
    document.body.className = setup.mode;
    document.title = setup.title ? `${setup.title} - rlgym-bridge` : "rlgym-bridge";
    if (taken) [this.camera.choose("ball"), this.follow(seat)];
    else if (first && setup.mode === "view" && setup.cars.length) this.follow(0);
  }

  follow(car) {
    if (this.followed === null && car !== null && !this.input.driving) this.camera.choose("chase");
    this.followed = car;
    if (car !== null) this.send({ type: "command", do: "follow", value: car });
  }

  // Asks the match to wait until this page draws again.
  sleep(seconds) {
    if (!this.setup || !this.input.driving) return;
    this.send({ type: "command", do: "stall", value: seconds });
    this.ready = false;
  }

  step(now) {
    requestAnimationFrame((next) => this.step(next));
    const began = performance.now(), seconds = this.last === null ? 0 : (now - this.last) / 1000;
    if (this.last !== null && now - this.last > ASLEEP_MS) [this.sleep(seconds), this.source.timeline?.clear()];
    this.last = now;
    const frame = this.setup && this.source.sample(now);
    if (!frame || frame.cars.length !== this.setup.cars.length) return;
    this.frame = frame;
    this.input.tell(now, frame.tick);
    const car = this.followed === null ? null : frame.cars[this.followed];
    this.view = this.renderer.draw(frame, this.camera.update(frame, car, Math.min(seconds, 0.1)), now / 1000, this.followed);
    this.hud.draw(frame, this.view, this.followed, this.camera.kind === "chase" || this.camera.kind === "ball" ? this.followed : null);
    this.panels.draw(frame);
    this.input.drawn(frame, performance.now());
    if (!this.ready) [this.ready] = [true, this.send({ type: "command", do: "ready" })];
    this.busy += (performance.now() - began - this.busy) * 0.05;
    this.rate += ((seconds ? 1 / seconds : 0) - this.rate) * 0.05;
    this.numbers(now);
    if (this.rate < 27 && now > (this.sharpened ?? now + 1) && this.renderer.scale > 0.5) // a slow machine: fewer points
      [this.renderer.scale, this.sharpened] = [this.renderer.scale * 0.85, now + 1500];
    this.sharpened ??= now + 3000;
  }

  numbers(now) {
    if (now - (this.counted ?? 0) < 500) return;
    this.counted = now;
    const { lag } = this.input, { stats } = this, parts = [`${this.rate.toFixed(0)} fps`, `${this.busy.toFixed(1)} ms`];
    if (stats?.ticks_s) parts.push(`${Math.round(stats.ticks_s)} ticks/s`);
    if (lag && this.input.driving) parts.push(`input ${lag.ticks} ticks, ${lag.ms.toFixed(0)} ms`);
    put("numbers", parts.join("  ·  "));
  }
}

try {
  window.app = new App();
} catch (error) {
  new Hud().say(error.message, "error", 0);
}
