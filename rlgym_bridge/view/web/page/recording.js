// A recording within the page itself: no server. The server packs it: recorded_frames.py.
import { between } from "./frames.js";

const TICK_COLUMN = 4, TICKS = 120; // its values may pass 16 bits; a second

// Returns {setup, frames} of the packed text.
export async function unpack(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]);
  const { buffer } = new Uint8Array(await new Response(packed.stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer());
  const view = new DataView(buffer), size = view.getUint32(0, true), setup = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const columns = Array.from({ length: setup.columns }, (_, column) => {
    const values = column === TICK_COLUMN ? new Float64Array(setup.frames) : new Int16Array(setup.frames);
    for (let i = 0, sum = 0, at = 4 + size + 2 * column * setup.frames; i < setup.frames; i++, at += 2)
      values[i] = sum += column === TICK_COLUMN ? view.getUint16(at, true) : view.getInt16(at, true);
    return values;
  });
  return { setup, frames: Array.from({ length: setup.frames }, (_, i) => frameAt(columns, i, setup.cars.length)) };
}

function frameAt(columns, i, count) {
  let column = 0;
  const next = () => columns[column++][i], many = (length, scale) => Array.from({ length }, () => next() * scale);
  const bytes = () => ((word) => [word & 255, (word >> 8) & 255])(next()), signed = (byte) => ((byte << 24) >> 24) / 127;
  const body = () => ({ pos: many(3, 0.25), quat: many(4, 1 / 32767), vel: many(3, 1) });
  const [phase, flags] = bytes(), clock = next() * 0.1, countdown = next() * 0.01, score = bytes(), tick = next();
  const ball = { ...body(), landing: many(2, 0.25), landingIn: next() * 0.01 };
  if (!ball.landingIn) ball.landing = [NaN, NaN];
  const cars = Array.from({ length: count }, () => {
    const car = body(), [boost, marks] = bytes(), [steer, throttle] = bytes().map(signed);
    return { ...car, boost, flags: marks, steer, throttle };
  });
  const pads = Uint8Array.from([bytes(), bytes(), bytes()].flat());
  return { phase, flags, tick, time: tick / TICKS, speed: 1, clock, countdown, score, inputSeq: 0, ball, cars, pads };
}

// Plays it, with the methods of a connection.
export class Recorded {
  constructor(text, receive) {
    Object.assign(this, { time: 0, speed: 1, playing: true, last: null, frames: [] });
    this.loaded = unpack(text).then(({ setup, frames }) => {
      this.frames = frames;
      this.length = frames.at(-1).time - frames[0].time;
      receive({ ...setup, length_s: this.length, local: true });
    });
  }
  send({ do: what, value }) {
    if (what === "pause") this.playing = false;
    if (what === "resume") [this.playing, this.time] = [true, this.time >= this.length ? 0 : this.time];
    if (what === "speed") this.speed = value;
    if (what === "seek") this.time = value;
  }
  clear() {}
  sample(now) {
    const seconds = this.last === null ? 0 : Math.min(0.1, (now - this.last) / 1000), { frames } = this;
    this.last = now;
    if (this.playing) this.time = Math.min(this.length, this.time + seconds * this.speed);
    const time = this.time + frames[0].time, after = Math.max(1, frames.findIndex((frame) => frame.time >= time - 1e-6));
    const [a, b] = [frames[after - 1], frames[after] ?? frames[after - 1]];
    const part = (time - a.time) / (b.time - a.time || 1);
    const paused = this.playing && this.time < this.length ? 0 : 1;
    return { ...between(a, b, Math.min(1, part)), flags: (b.flags & ~1) | paused, speed: this.speed, time: this.time };
  }
}
