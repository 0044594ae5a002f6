// Frames as they come from the server, and the state between two of them that is shown now.
import { blend, clamp, lerp, minus, mix, norm } from "./math.js";

const TICK = 1 / 120, HEAD = 32, BALL = 68, CAR = 56, MOST_KEPT = 90; // seconds; bytes

// Reads a frame of bytes; the server's frames.py says where what stands.
export function decode(buffer) {
  const view = new DataView(buffer), f = (at) => view.getFloat32(at, true), n = view.getUint8(3), end = HEAD + BALL + CAR * n;
  const list = (at, count) => Array.from({ length: count }, (_, i) => f(at + 4 * i));
  const car = (_, i, at = HEAD + BALL + CAR * i) => ({
    pos: list(at, 3), quat: list(at + 12, 4), vel: list(at + 28, 3), boost: f(at + 40), steer: f(at + 44), throttle: f(at + 48),
    flags: view.getUint32(at + 52, true),
  });
  return {
    phase: view.getUint8(1), flags: view.getUint8(2), tick: view.getUint32(4, true), speed: f(8), clock: f(12), countdown: f(16),
    score: [view.getUint16(20, true), view.getUint16(22, true)], inputSeq: view.getUint32(24, true), time: f(28),
    ball: { pos: list(HEAD, 3), vel: list(HEAD + 12, 3), quat: list(HEAD + 36, 4), landing: list(HEAD + 52, 3) },
    cars: Array.from({ length: n }, car), pads: new Uint8Array(buffer, end),
  };
}

// Returns the state at a part 0..1 of the way between two frames; a body that was set elsewhere does not slide.
export function between(a, b, part) {
  const seconds = Math.max(TICK, Math.abs(b.time - a.time));
  const body = (x, y) => {
    const most = 60 + 1.6 * seconds * Math.max(norm(x.vel), norm(y.vel), 300);
    return norm(minus(y.pos, x.pos)) > most ? y : { ...y, pos: lerp(x.pos, y.pos, part), quat: blend(x.quat, y.quat, part), vel: lerp(x.vel, y.vel, part) };
  };
  const cars = b.cars.map((car, i) => ({ ...body(a.cars[i], car), steer: mix(a.cars[i].steer, car.steer, part), boost: mix(a.cars[i].boost, car.boost, part) }));
  return { ...b, time: mix(a.time, b.time, part), ball: body(a.ball, b.ball), cars };
}

// Shows frames a little late, so that there are two to draw between: 1.5 ticks, more where they come unevenly.
export class Timeline {
  constructor() {
    this.clear();
  }
  clear() {
    [this.frames, this.shown, this.last, this.late, this.came] = [[], null, null, 1.5 * TICK, null];
  }
  push(buffer, now) {
    const view = new DataView(buffer), whole = (at) => view.getUint32(at, true), real = (at) => view.getFloat32(at, true);
    const frame = { buffer, tick: whole(4), speed: real(8), inputSeq: whole(24), time: real(28) };
    if (frame.time < (this.frames.at(-1)?.time ?? 0) - 1e-4) this.clear(); // rewound
    const gap = this.came === null ? 0 : (now - this.came) / 1000;
    if (gap && gap < 0.25) this.late = Math.max(mix(this.late, 1.5 * TICK, 0.01), Math.min(gap * 1.25, 0.12));
    this.came = now;
    if (this.frames.push(frame) > MOST_KEPT) this.frames.shift();
  }
  // Returns the state to draw at `now` ms, null before the first frame.
  sample(now) {
    const newest = this.frames.at(-1), whole = (frame) => (frame.state ??= decode(frame.buffer));
    if (!newest) return null;
    const seconds = this.last === null ? 0 : (now - this.last) / 1000, { speed } = newest;
    const wanted = newest.time + clamp((now - this.came) / 1000, 0, 0.1) * speed - this.late * Math.max(speed, 0.25);
    this.last = now;
    if (!speed) return whole(newest, (this.shown = newest.time)); // it stands still, and bodies may be put elsewhere
    this.shown = this.shown === null ? wanted : this.shown + seconds * speed;
    const off = wanted - this.shown;
    this.shown += Math.abs(off) > 0.3 ? off : off * Math.min(1, seconds * 6);
    const after = this.frames.findIndex(({ time }) => time >= this.shown), b = this.frames.at(after), a = this.frames[Math.max(0, after - 1)];
    return after <= 0 || b.time <= a.time ? whole(b) : between(whole(a), whole(b), clamp((this.shown - a.time) / (b.time - a.time), 0, 1));
  }
}
