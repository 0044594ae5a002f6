// A recording within the page itself: no server. The server packs it: recorded_frames.py.
import { between, decode } from "./frames.js";

// Returns {setup, frames} of the packed text.
export async function unpack(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]);
  const buffer = await new Response(packed.stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
  const size = new DataView(buffer).getUint32(0, true), setup = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const frames = Array.from({ length: setup.frames }, () => new Uint8Array(setup.bytes));
  const steps = new Uint8Array(buffer, 4 + size);
  frames.forEach((frame, i) => frame.forEach((_, byte) => (frame[byte] = steps[byte * frames.length + i] + (i && frames[i - 1][byte]))));
  return { setup, frames: frames.map((frame) => decode(frame.buffer)) };
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
