// Triangles of the field and of what moves on it: 10 numbers a corner (place, normal, colour and a tag).
import { add, cross, minus, unit } from "./math.js";

const SIDE = 4096, BACK = 5120, CEILING = 2044, CORNER = 1152, NET = 5980, DEPTH = 6000; // uu
const GOAL = [892.755, 642.775]; // uu, half of its width, and its height
const PLAIN = 0, TINT = 1, GLOW = 2; // tags: as it is, painted in the team's colour, shining by itself
const range = (count) => Array.from({ length: count }, (_, i) => i);

class Shape {
  corners = [];
  tri(a, b, c, color, tag = PLAIN) {
    const normal = unit(cross(minus(b, a), minus(c, a)));
    for (const p of [a, b, c]) this.corners.push(...p, ...normal, ...color, tag);
  }
  quad(a, b, c, d, color, tag) {
    this.tri(a, b, c, color, tag);
    this.tri(a, c, d, color, tag);
  }
  box(low, high, color, tag) {
    const p = (i) => [0, 1, 2].map((k) => ((i >> k) & 1 ? high : low)[k]);
    for (const [a, b, c, d] of [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]])
      this.quad(p(a), p(b), p(c), p(d), color, tag);
  }
  // Joins cross sections [x, half width, bottom, top, half width of the top] along the x axis.
  loft(sections, color, tag, roof = [color, tag]) {
    const rings = sections.map(([x, w, low, high, top]) => {
      const edge = low + (high - low) * 0.6;
      return [[x, -w, low], [x, w, low], [x, w, edge], [x, top, high], [x, -top, high], [x, -w, edge]];
    });
    rings.slice(1).forEach((b, s) => range(6).forEach((i) => {
      const a = rings[s], j = (i + 1) % 6;
      this.quad(a[i], a[j], b[j], b[i], ...(i === 3 ? roof : [color, tag]));
    }));
    for (const ring of [rings[0], rings.at(-1)]) for (const i of [1, 2, 3, 4]) this.tri(ring[0], ring[i], ring[i + 1], color, tag);
  }
  // Turns a line of [radius, height] about an axis (0 x, 1 y, 2 z) through `centre`; `color` may be a function of the side.
  lathe(centre, line, sides, axis, color, tag) {
    const at = (i, [r, h]) => {
      const turn = (2 * Math.PI * i) / sides, p = [0, 0, 0];
      [p[axis], p[(axis + 1) % 3], p[(axis + 2) % 3]] = [h, r * Math.cos(turn), r * Math.sin(turn)];
      return add(centre, p);
    };
    line.slice(1).forEach((b, k) => range(sides).forEach((i) => this.quad(at(i, line[k]), at(i + 1, line[k]), at(i + 1, b), at(i, b), color(i), tag)));
  }
}
const built = (fill) => {
  const shape = new Shape();
  fill(shape);
  return new Float32Array(shape.corners);
};
const always = (color) => () => color;
const half = (rings, r) => range(rings + 1).map((i) => [r * Math.sin((Math.PI * i) / rings), r * Math.cos((Math.PI * i) / rings)]); // of a circle

// The eight corners of the field, moved inwards by `sides` at side walls and corners, by `back` at back walls.
function outline(sides, back) {
  const x = SIDE - sides, y = BACK - back, cut = SIDE + BACK - CORNER - Math.SQRT2 * sides;
  const quarter = [[x, cut - x], [cut - y, y]], turned = (sx, sy) => quarter.map(([a, b]) => [sx * a, sy * b]);
  return [...quarter, ...turned(-1, 1).reverse(), ...turned(-1, -1), ...turned(1, -1).reverse()];
}

// Walls with their ramps, ring by ring from the floor's edge to the ceiling's, without the goals' mouths.
export const makeShell = () => built((shape) => {
  const bend = (i, steps) => [1 - Math.sin((Math.PI / 2) * (i / steps)), 1 - Math.cos((Math.PI / 2) * (i / steps))];
  const ramp = range(9).map((i) => bend(i, 8)).map(([out, up]) => [outline(256 * out, 160 * out), 256 * up]);
  const top = range(7).map((i) => bend(i, 6)).map(([down, out]) => [outline(480 * out, 420 * out), CEILING - 480 * down]);
  const rings = [...ramp, [outline(0, 0), GOAL[1]], ...top];
  rings.slice(1).forEach(([high, Z], k) => {
    const [low, z] = rings[k];
    for (const i of range(8)) {
      const j = (i + 1) % 8, side = i === 1 ? 1 : -1, mouth = i % 4 === 1 && Z <= GOAL[1] + 1;
      const along = (ring, height) => [ring[i], [side * GOAL[0], ring[i][1]], [-side * GOAL[0], ring[i][1]], ring[j]].map((p) => [...p, height]);
      const [a, b] = [along(low, z), along(high, Z)];
      for (const [s, e] of mouth ? [[0, 1], [2, 3]] : [[0, 3]]) shape.quad(a[e], a[s], b[s], b[e], [1, 1, 1], PLAIN);
    }
  });
  for (const [x, y] of [[1, 1], [1, -1], [-1, 1], [-1, -1]]) // closes the ramps at the posts
    for (const k of range(8)) {
      const edge = rings.slice(k, k + 2).map(([ring, z]) => [x * GOAL[0], y * ring[1][1], z]);
      shape.tri([x * GOAL[0], y * BACK, 0], ...(x * y > 0 ? edge : edge.reverse()), [1, 1, 1]);
    }
});

export const makeFloor = () => built((shape) => {
  const points = outline(256, 160).map((p) => [...p, 0]), w = GOAL[0];
  points.forEach((p, i) => shape.tri([0, 0, 0], p, points[(i + 1) % 8], [1, 1, 1]));
  for (const s of [1, -1]) shape.quad(...[[-w, 4960], [w, 4960], [w, DEPTH], [-w, DEPTH]].map(([x, y]) => [s * x, s * y, 0]), [1, 1, 1], PLAIN);
});

// Nets and posts (GLOW) of both goals, in the colours of the teams.
export const makeGoals = (colors) => built((shape) => {
  const [w, h] = GOAL;
  [-1, 1].forEach((s, team) => {
    const y = s * BACK, Y = s * NET, c = colors[team];
    shape.quad([-w, Y, 0], [w, Y, 0], [w, Y, h], [-w, Y, h], c, PLAIN);
    shape.quad([-w, y, h], [w, y, h], [w, Y, h], [-w, Y, h], c, PLAIN);
    for (const x of [-w, w]) shape.quad([x, y, 0], [x, Y, 0], [x, Y, h], [x, y, h], c, PLAIN);
    for (const x of [-w - 22, w + 22]) shape.box([x - 22, y - 22, 0], [x + 22, y + 22, h + 44], c, GLOW);
    shape.box([-w, y - 22, h], [w, y + 22, h + 44], c, GLOW);
  });
});

// Stands around the field that rise outwards; the colour says which part is the crowd (red) and which a lamp (green).
export const makeStands = () => built((shape) => {
  const steps = [[260, -40], [700, -40], [4300, 2300], [4400, 3000], [5200, 3300]];
  const rings = steps.map(([out, z]) => outline(-out, -out - 900).map((p) => [...p, z]));
  rings.slice(1).forEach((b, k) => b.forEach((_, i) => {
    const a = rings[k], j = (i + 1) % 8;
    shape.quad(a[j], a[i], b[i], b[j], [k === 1 ? 1 : 0, k === 3 ? 1 : 0, 0], PLAIN);
  }));
});

// Plates of the pads, and what shines above them, whose tag is the pad's number.
export const makePlates = (pads) => built((shape) => pads.forEach(([x, y, , big]) => {
  const [r, h, sides] = big ? [150, 14, 24] : [62, 7, 12];
  shape.lathe([x, y, 0], [[r, 1], [r * 0.86, h], [0, h]], sides, 2, always([0.035, 0.045, 0.06]), PLAIN);
}));
export const makeLights = (pads) => built((shape) => pads.forEach(([x, y, , big], i) => {
  const [r, h, sides] = big ? [99, 14, 24] : [41, 7, 12], gold = always([1, 0.52, 0.06]);
  shape.lathe([x, y, 0], [[r, h], [r * 0.9, h + 9], [0, h + 9]], sides, 2, gold, i);
  if (big) shape.lathe([x, y, 150], half(10, 66), 20, 2, gold, i);
}));

// A car's body in a box of side 1; nose at +x.
export const makeBody = () => built((shape) => {
  const paint = [1, 1, 1], glass = [0.012, 0.02, 0.032], trim = [0.03, 0.034, 0.04];
  shape.loft([
    [-0.5, 0.38, -0.36, 0.12, 0.32], [-0.42, 0.47, -0.62, 0.2, 0.4], [-0.1, 0.47, -0.66, 0.12, 0.42],
    [0.24, 0.46, -0.66, 0.02, 0.39], [0.43, 0.41, -0.6, -0.13, 0.33], [0.5, 0.28, -0.44, -0.22, 0.24],
  ], paint, TINT);
  shape.loft([[-0.4, 0.28, 0.08, 0.2, 0.24], [-0.24, 0.36, 0.08, 0.47, 0.25], [0, 0.36, 0.06, 0.5, 0.26], [0.24, 0.33, -0.02, 0.06, 0.28]], glass, PLAIN, [paint, TINT]);
  shape.loft([[0.02, 0.262, 0.49, 0.503, 0.255], [0.242, 0.29, 0.045, 0.07, 0.27]], glass, PLAIN);
  shape.loft([[-0.5, 0.47, 0.36, 0.44, 0.45], [-0.38, 0.47, 0.38, 0.43, 0.45]], paint, TINT);
  const boxes = [[[-0.507, -0.3, -0.02], [-0.49, 0.3, 0.05], [1, 0.04, 0.03], GLOW], [[-0.52, -0.12, -0.26], [-0.48, 0.12, -0.08], [0.01, 0.01, 0.012], PLAIN]];
  for (const s of [-1, 1])
    boxes.push(
      [[-0.59, s * 0.45 - 0.08, -0.4], [-0.21, s * 0.45 + 0.08, -0.12], paint, TINT], [[0.16, s * 0.45 - 0.08, -0.4], [0.48, s * 0.45 + 0.08, -0.12], paint, TINT],
      [[-0.47, s * 0.31 - 0.02, 0.1], [-0.41, s * 0.31 + 0.02, 0.38], trim, PLAIN], [[0.455, s * 0.19 - 0.08, -0.26], [0.503, s * 0.19 + 0.08, -0.2], [1, 0.95, 0.8], GLOW],
    );
  for (const box of boxes) shape.box(...box);
});

// A wheel of radius 1 and width 1 about the y axis, with spokes.
export const makeWheel = () => built((shape) => {
  const line = [[0.64, -0.5], [0.94, -0.5], [1, -0.3], [1, 0.3], [0.94, 0.5], [0.64, 0.5]];
  shape.lathe([0, 0, 0], line, 16, 1, always([0.012, 0.013, 0.015]), PLAIN);
  for (const y of [-0.44, 0.44]) shape.lathe([0, y, 0], [[0.66, 0], [0, 0]], 16, 1, (i) => (i % 4 < 2 ? [0.32, 0.35, 0.4] : [0.11, 0.12, 0.14]), PLAIN);
});
export const makeBall = () => built((shape) => shape.lathe([0, 0, 0], half(18, 1), 36, 2, always([1, 1, 1]), PLAIN));
export const makeFlame = () => built((shape) => shape.lathe([0, 0, 0], [[0.5, 0], [1, -0.18], [0, -1]], 10, 0, always([1, 1, 1]), PLAIN));
