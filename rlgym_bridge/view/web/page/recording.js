// A recording within the page itself: no server. The server's frames.py packs it.
import { between } from "./frames.js";

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Returns {setup, frames} of the packed text.
export async function unpack(text) {
  const bytes = await inflate(text), view = new DataView(bytes.buffer), length = view.getUint32(0, true);
  const setup = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))), { frames: count, columns } = setup;
  const read = Array.from({ length: columns }, (_, column) => {
    const values = new Int16Array(count), ticks = column === 4 ? new Float64Array(count) : null;
    for (let i = 0, sum = 0, at = 4 + length + 2 * column * count; i < count; i++, at += 2) {
      const step = ticks ? view.getUint16(at, true) : view.getInt16(at, true);
      sum += step;
      (ticks ?? values)[i] = sum;
    }
    return ticks ?? values;
  });
  return { setup, frames: Array.from({ length: count }, (_, i) => frameAt(read, i, setup.cars.length)) };
}

function frameAt(columns, i, cars) {
  let column = 0;
  const next = () => columns[column++][i], word = () => next() & 0xffff, signed = (byte) => (byte << 24) >> 24;
  const many = (count, scale) => Array.from({ length: count }, () => next() * scale);
  const state = word(), clock = next() * 0.1, countdown = next() * 0.01, score = word(), tick = next();
  const ball = { pos: many(3, 0.25), quat: many(4, 1 / 32767), vel: many(3, 1), ang: [0, 0, 0], landing: [NaN, NaN, NaN], landingIn: NaN };
  const list = Array.from({ length: cars }, () => {
    const body = { pos: many(3, 0.25), quat: many(4, 1 / 32767), vel: many(3, 1) }, more = word(), sticks = word();
    return { ...body, boost: more & 255, flags: more >> 8, steer: signed(sticks & 255) / 127, throttle: signed(sticks >> 8) / 127 };
  });
  const words = [word(), word(), word()], pads = Uint8Array.from(words.flatMap((value) => [value & 255, value >> 8]));
  return {
    phase: state & 255, flags: state >> 8, tick, time: tick / 120, speed: 1, clock, countdown, score: [score & 255, score >> 8],
    inputSeq: 0, ball, cars: list, pads,
  };
}

// Plays it, with the methods of a connection: send, sample.
export class Recorded {
  constructor(text, receive) {
    [this.time, this.speed, this.playing, this.last, this.at] = [0, 1, true, null, 1];
    this.loaded = unpack(text).then(({ setup, frames }) => {
      [this.frames, this.first] = [frames, frames[0]?.time ?? 0];
      this.length = (frames.at(-1)?.time ?? 0) - this.first;
      receive({ ...setup, length_s: this.length, local: true });
    });
  }

  send({ do: what, value }) {
    if (what === "pause") this.playing = false;
    if (what === "resume") [this.playing, this.time] = [true, this.time >= this.length ? 0 : this.time];
    if (what === "speed") this.speed = value;
    if (what === "seek") this.time = value;
  }

  sample(now) {
    if (!this.frames?.length) return null;
    const seconds = this.last === null ? 0 : Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    if (this.playing) this.time = Math.min(this.length, this.time + seconds * this.speed);
    const time = this.first + this.time;
    let [low, high] = [0, this.frames.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.frames[middle].time <= time) low = middle;
      else high = middle;
    }
    const [a, b] = [this.frames[low], this.frames[high]], part = b.time > a.time ? (time - a.time) / (b.time - a.time) : 1;
    const paused = this.playing && this.time < this.length ? 0 : 1;
    return { ...between(a, b, Math.min(1, Math.max(0, part))), flags: (b.flags & ~1) | paused, speed: this.speed, time: this.time };
  }
}
