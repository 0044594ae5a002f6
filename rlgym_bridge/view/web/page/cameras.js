// Where one looks from: behind a car as in the game, from the stands, from above, or freely.
import { add, axes, clamp, dot, lerp, minus, norm, times, unit } from "./math.js";

const DISTANCE = 270, HEIGHT = 110, ANGLE = -3, FOV = 110, STIFFNESS = 0.5; // the game's menu; angle and FOV in degrees
const SIDE = 4000, BACK = 5040, LOW = 24, HIGH = 1980, CORNERS = 7900, FAR = 900; // uu

export class Camera {
  constructor() {
    [this.kind, this.pos, this.target, this.fov] = ["stands", [0, -7000, 2600], [0, 0, 200], 60];
    [this.yaw, this.pitch, this.zoom, this.heading, this.jump] = [0.6, 0.5, 5200, null, true];
  }
  choose(kind) {
    [this.kind, this.jump, this.heading] = [kind, true, null];
  }
  orbit(dx, dy) {
    if (this.kind !== "free") this.choose("free");
    [this.yaw, this.pitch] = [this.yaw - dx * 0.006, clamp(this.pitch + dy * 0.006, -0.1, 1.5)];
  }
  nearer(turned) {
    this.zoom = clamp(this.zoom * Math.exp(turned * 0.001), 300, 12000);
  }
  // Moves on by some seconds. `car` is the followed one, null where there is none.
  update(frame, car, seconds) {
    const kind = !car && (this.kind === "chase" || this.kind === "ball") ? "stands" : this.kind;
    if (car && norm(minus(car.pos, this.seen ?? car.pos)) > FAR) this.choose(this.kind); // it was put elsewhere
    this.seen = car?.pos;
    const ball = frame.ball.pos, soft = (rate) => (this.jump ? 1 : 1 - Math.exp(-rate * seconds));
    if (kind === "chase" || kind === "ball") this.behind(kind, car, ball, soft);
    else if (kind === "top") this.set([60, 0, 7900], [0, 0, 0], 88, soft(8)); // blue's goal on the left
    else if (kind === "free") {
      const centre = car ? car.pos : [0, 0, 300], flat = Math.cos(this.pitch) * this.zoom;
      this.set(add(centre, [-Math.cos(this.yaw) * flat, -Math.sin(this.yaw) * flat, Math.sin(this.pitch) * this.zoom + 60]), centre, 70, soft(14));
    } else {
      const goal = add(times(ball, 0.5), [0, 0, 60]), y = clamp(ball[1] * 0.55, -3200, 3200);
      this.set([5900, y - 900, 2250], [goal[0] * 0.6 - 500, ball[1] * 0.72, goal[2]], 68, soft(2.5));
    }
    this.jump = false;
  }
  set(pos, target, fov, part) {
    [this.pos, this.target, this.fov] = [lerp(this.pos, pos, part), lerp(this.target, target, part), fov];
  }
  behind(kind, car, ball, soft) {
    const [front, , up] = axes(car.quat), speed = norm(car.vel), grounded = car.flags & 1;
    const seen = minus(ball, add(car.pos, [0, 0, HEIGHT])), far = norm(seen);
    let along = speed > 250 && (!grounded || dot(car.vel, front) > 0) ? unit(car.vel) : front;
    if (kind === "chase" && grounded) along = unit(add(times(front, 0.7), along, 0.3));
    if (kind === "chase" && !grounded) along = unit([along[0], along[1], along[2] * 0.35]);
    if (kind === "ball") along = far > 1 ? times(seen, 1 / far) : front;
    this.heading = this.heading ? unit(lerp(this.heading, along, soft(kind === "ball" ? 14 : 5 + 6 * STIFFNESS))) : along;
    const level = unit([this.heading[0], this.heading[1], clamp(this.heading[2], -0.55, 0.5)]);
    const back = DISTANCE * (1 + 0.28 * (1 - STIFFNESS) * clamp(speed / 2300, 0, 1));
    const rise = kind === "chase" && grounded && up[2] < 0.7 ? add([0, 0, HEIGHT * 0.5], up, HEIGHT * 0.5) : [0, 0, HEIGHT];
    const pos = add(add(car.pos, rise), level, -back);
    const inNet = Math.abs(pos[0]) < 800 && pos[2] < 560, deep = inNet ? 5900 : BACK;
    const y = clamp(pos[1], -deep, deep), side = Math.min(SIDE, inNet ? SIDE : CORNERS - Math.abs(y)); // the corners are cut off
    this.pos = [clamp(pos[0], -side, side), y, clamp(pos[2], LOW, HIGH)];
    const tilt = Math.tan((ANGLE * Math.PI) / 180) * back, ahead = add(add(car.pos, rise), [0, 0, tilt]);
    const aim = kind === "ball" ? add(times(ball, 0.8), ahead, 0.2) : add(ahead, level, 600);
    [this.target, this.fov] = [this.jump ? aim : lerp(this.target, aim, soft(22)), FOV];
  }
}
