// Triangles of the field and of what moves on it: 10 numbers a corner (place, normal, colour and a tag).
import { add, cross, minus, times, unit } from "./math.js";

const SIDE = 4096, BACK = 5120, CEILING = 2044, CORNER = 1152, DEPTH = 6000;
const GOAL = [892.755, 642.775]; // half of its width, and its height
export const TINT = 1, GLOW = 2; // tags: painted in the team's colour, shining by itself

class Shape {
  corners = [];
  tri(a, b, c, color, tag = 0, normals = null) {
    const flat = normals ? null : unit(cross(minus(b, a), minus(c, a)));
    [a, b, c].forEach((p, i) => this.corners.push(...p, ...(flat ?? normals[i]), ...color, tag));
    return this;
  }
  quad(a, b, c, d, color, tag = 0, normals = null) {
    const n = normals ?? [];
    this.tri(a, b, c, color, tag, normals && [n[0], n[1], n[2]]);
    return this.tri(a, c, d, color, tag, normals && [n[0], n[2], n[3]]);
  }
  box([x, y, z], [X, Y, Z], color, tag = 0) {
    const p = (i) => [i & 1 ? X : x, i & 2 ? Y : y, i & 4 ? Z : z];
    for (const [a, b, c, d] of [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]])
      this.quad(p(a), p(b), p(c), p(d), color, tag);
    return this;
  }
  // Joins cross sections [x, half width, bottom, top, half width of the top] along the x axis.
  loft(sections, color, tag = 0, roof = [color, tag]) {
    const rings = sections.map(([x, w, low, high, top]) => [[x, -w, low], [x, w, low], [x, w, low + (high - low) * 0.6], [x, top, high], [x, -top, high], [x, -w, low + (high - low) * 0.6]]);
    for (let s = 0; s + 1 < rings.length; s++)
      for (let i = 0; i < 6; i++) {
        const [a, b, j] = [rings[s], rings[s + 1], (i + 1) % 6], [paint, how] = i === 3 ? roof : [color, tag];
        this.quad(a[i], a[j], b[j], b[i], paint, how);
      }
    for (const [ring, turned] of [[rings[0], true], [rings.at(-1), false]])
      for (let i = 1; i < 5; i++) this.tri(ring[0], ring[turned ? i + 1 : i], ring[turned ? i : i + 1], color, tag);
    return this;
  }
  // Turns a line of [radius, height] about the axis through `centre`; axis 1: y, axis 2: z.
  lathe(centre, line, sides, axis, color, tag = 0) {
    const at = (i, [r, h]) => {
      const [c, s] = [r * Math.cos((2 * Math.PI * i) / sides), r * Math.sin((2 * Math.PI * i) / sides)];
      return add(centre, axis === 2 ? [c, s, h] : [s, h, c]);
    };
    for (let k = 0; k + 1 < line.length; k++)
      for (let i = 0; i < sides; i++)
        this.quad(at(i, line[k]), at(i + 1, line[k]), at(i + 1, line[k + 1]), at(i, line[k + 1]), color, tag);
    return this;
  }
  sphere(centre, radius, rings, color, tag = 0) {
    const at = (i, j) => [Math.sin((Math.PI * i) / rings) * Math.cos((Math.PI * j) / rings), Math.sin((Math.PI * i) / rings) * Math.sin((Math.PI * j) / rings), Math.cos((Math.PI * i) / rings)];
    for (let i = 0; i < rings; i++)
      for (let j = 0; j < 2 * rings; j++) {
        const n = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
        this.quad(...n.map((p) => add(centre, p, radius)), color, tag, n);
      }
    return this;
  }
  array() {
    return new Float32Array(this.corners);
  }
}

// The corners of the field moved inwards: by `sides` at side walls and corners, by `back` at the back walls.
function outline(sides, back) {
  const x = SIDE - sides, y = BACK - back, cut = SIDE + BACK - CORNER - Math.SQRT2 * sides;
  const quarter = [[x, cut - x], [cut - y, y]];
  return [...quarter, [-quarter[1][0], y], [-x, quarter[0][1]], [-x, -quarter[0][1]], [-quarter[1][0], -y], [quarter[1][0], -y], [x, -quarter[0][1]]];
}

// Rings of the shell from the floor's edge up the ramp and the wall to the ceiling's edge: [points, height].
function rings() {
  const arc = (steps, ring) => Array.from({ length: steps + 1 }, (_, i) => ring((Math.PI / 2) * (i / steps)));
  const ramp = arc(8, (a) => [outline(256 * (1 - Math.sin(a)), 160 * (1 - Math.sin(a))), 256 * (1 - Math.cos(a))]);
  const top = arc(6, (a) => [outline(480 * (1 - Math.cos(a)), 420 * (1 - Math.cos(a))), CEILING - 480 * (1 - Math.sin(a))]);
  return [...ramp, [outline(0, 0), GOAL[1]], ...top];
}

// Walls with their ramps; the colour carries the run along the wall in uu.
export function makeShell() {
  const shape = new Shape(), all = rings(), up = ([x, y], z) => [x, y, z];
  for (let k = 0; k + 1 < all.length; k++) {
    const [[low, z], [high, Z]] = [all[k], all[k + 1]];
    for (let i = 0; i < 8; i++) {
      const j = (i + 1) % 8, back = i === 1 || i === 5, side = i === 1 ? 1 : -1;
      const spans = back && Z <= GOAL[1] + 1 ? [[0, 1], [2, 3]] : [[0, 3]];
      const cut = (a, b) => [a, [side * GOAL[0], a[1]], [-side * GOAL[0], a[1]], b];
      const [lows, highs] = [cut(low[i], low[j]), cut(high[i], high[j])];
      for (const [s, e] of spans)
        shape.quad(up(lows[e], z), up(lows[s], z), up(highs[s], Z), up(highs[e], Z), [k < 8 ? 1 : 0, i % 2 ? 1 : 0, 0]);
    }
  }
  for (const [x, y] of [[1, 1], [1, -1], [-1, 1], [-1, -1]]) // what closes the ramps at the posts
    for (let k = 0; k < 8; k++) {
      const p = all.slice(k, k + 2).map(([points, z]) => [x * GOAL[0], y * points[1][1], z]), foot = [x * GOAL[0], y * BACK, 0];
      shape.tri(foot, ...(x * y > 0 ? p : p.reverse()), [1, 1, 0]);
    }
  return shape.array();
}

export function makeFloor() {
  const shape = new Shape(), points = outline(256, 160).map(([x, y]) => [x, y, 0]), white = [1, 1, 1];
  points.forEach((p, i) => shape.tri([0, 0, 0], p, points[(i + 1) % 8], white));
  const w = GOAL[0];
  for (const s of [1, -1]) shape.quad(...[[-w, 4960], [w, 4960], [w, DEPTH], [-w, DEPTH]].map(([x, y]) => [s * x, s * y, 0]), white);
  return shape.array();
}

// Nets (tag 0) and posts (tag GLOW) of both goals, in the colours of the teams.
export function makeGoals(colors) {
  const shape = new Shape(), [w, h] = GOAL;
  [-1, 1].forEach((s, team) => {
    const y = s * BACK, Y = s * 5980, p = (x, y, z) => [s * x, y, z], c = colors[team];
    shape.quad(p(-w, Y, 0), p(w, Y, 0), p(w, Y, h), p(-w, Y, h), c);
    shape.quad(p(-w, y, h), p(w, y, h), p(w, Y, h), p(-w, Y, h), c);
    for (const x of [-w, w]) shape.quad(p(x, y, 0), p(x, Y, 0), p(x, Y, h), p(x, y, h), c);
    for (const x of [-w - 22, w + 22]) shape.box([x - 22, y - 22, 0], [x + 22, y + 22, h + 44], c, GLOW);
    shape.box([-w, y - 22, h], [w, y + 22, h + 44], c, GLOW);
  });
  return shape.array();
}

// Stands around the field, steps that rise outwards.
export function makeStands() {
  const shape = new Shape(), steps = [[260, -40], [700, -40], [4300, 2300], [4400, 3000], [5200, 3300]];
  for (let k = 0; k + 1 < steps.length; k++) {
    const [a, b] = [steps[k], steps[k + 1]].map(([out, z]) => outline(-out, -out - 900).map(([x, y]) => [x, y, z]));
    for (let i = 0; i < 8; i++) shape.quad(a[(i + 1) % 8], a[i], b[i], b[(i + 1) % 8], [k === 1 ? 1 : 0, k === 3 ? 1 : 0, 0]);
  }
  return shape.array();
}

// Plates of the pads, and what shines above them: its tag is the pad's number.
export function makePads(pads) {
  const plates = new Shape(), lights = new Shape(), dark = [0.035, 0.045, 0.06], gold = [1, 0.52, 0.06];
  pads.forEach(([x, y, , big], i) => {
    const r = big ? 150 : 62, c = [x, y, 0];
    plates.lathe(c, [[r, 1], [r * 0.86, big ? 14 : 7], [0, big ? 14 : 7]], big ? 24 : 12, 2, dark);
    lights.lathe(c, [[r * 0.66, big ? 15 : 8], [r * 0.6, big ? 24 : 15], [0, big ? 24 : 15]], big ? 18 : 10, 2, gold, i);
    if (big) lights.sphere([x, y, 150], 66, 10, gold, i);
  });
  return [plates.array(), lights.array()];
}

// A car's body in a box of side 1; nose at +x.
export function makeBody() {
  const shape = new Shape(), paint = [1, 1, 1], glass = [0.012, 0.02, 0.032], trim = [0.03, 0.034, 0.04];
  shape.loft([[-0.5, 0.38, -0.36, 0.12, 0.32], [-0.42, 0.47, -0.62, 0.2, 0.4], [-0.1, 0.47, -0.66, 0.12, 0.42], [0.24, 0.46, -0.66, 0.02, 0.39], [0.43, 0.41, -0.6, -0.13, 0.33], [0.5, 0.28, -0.44, -0.22, 0.24]], paint, TINT);
  for (const [x, w] of [[-0.4, 0.19], [0.32, 0.16]]) // fenders
    for (const y of [-0.53, 0.37]) shape.box([x - w, y, -0.4], [x + w, y + 0.16, -0.12], paint, TINT);
  shape.loft([[-0.4, 0.28, 0.08, 0.2, 0.24], [-0.24, 0.36, 0.08, 0.47, 0.25], [0.0, 0.36, 0.06, 0.5, 0.26], [0.24, 0.33, -0.02, 0.06, 0.28]], glass, 0, [paint, TINT]);
  shape.loft([[0.02, 0.262, 0.49, 0.503, 0.255], [0.242, 0.29, 0.045, 0.07, 0.27]], glass);
  shape.loft([[-0.5, 0.47, 0.36, 0.44, 0.45], [-0.38, 0.47, 0.38, 0.43, 0.45]], paint, TINT);
  for (const y of [-0.33, 0.29]) shape.box([-0.47, y, 0.1], [-0.41, y + 0.04, 0.38], trim);
  for (const y of [-0.51, 0.46]) shape.box([-0.14, y, -0.5], [0.2, y + 0.05, -0.34], trim);
  for (const y of [-0.27, 0.11]) shape.box([0.455, y, -0.26], [0.503, y + 0.16, -0.2], [1, 0.95, 0.8], GLOW);
  shape.box([-0.507, -0.3, -0.02], [-0.49, 0.3, 0.05], [1, 0.04, 0.03], GLOW);
  shape.box([-0.52, -0.12, -0.26], [-0.48, 0.12, -0.08], [0.01, 0.01, 0.012]);
  return shape.array();
}

// A wheel of radius 1 and width 1 about the y axis, with spokes.
export function makeWheel() {
  const shape = new Shape(), rubber = [0.012, 0.013, 0.015], rim = [0.32, 0.35, 0.4];
  shape.lathe([0, 0, 0], [[0.64, -0.5], [0.94, -0.5], [1, -0.3], [1, 0.3], [0.94, 0.5], [0.64, 0.5]], 16, 1, rubber);
  for (const side of [-1, 1]) {
    for (let i = 0; i < 16; i++) {
      const at = (k, r) => [r * Math.sin((Math.PI * k) / 8), side * 0.42, r * Math.cos((Math.PI * k) / 8)];
      const corners = [[0, side * 0.46, 0], at(i, 0.66), at(i + 1, 0.66)];
      shape.tri(...(side > 0 ? corners : [corners[0], corners[2], corners[1]]), i % 4 < 2 ? rim : times(rim, 0.35));
    }
  }
  return shape.array();
}

export const makeBall = () => new Shape().sphere([0, 0, 0], 1, 18, [1, 1, 1]).array();

// A flame of length 1 from the origin along -x; its tag fades from 1 to 0.
export function makeFlame() {
  const shape = new Shape();
  for (let i = 0; i < 10; i++) {
    const at = (k, r, x) => [x, r * Math.cos((Math.PI * k) / 5), r * Math.sin((Math.PI * k) / 5)];
    shape.quad(at(i, 0.5, 0), at(i + 1, 0.5, 0), at(i + 1, 1, -0.18), at(i, 1, -0.18), [1, 1, 1], 0);
    shape.tri(at(i, 1, -0.18), at(i + 1, 1, -0.18), [-1, 0, 0], [1, 1, 1], 0);
  }
  return shape.array();
}
