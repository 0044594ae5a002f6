// Vectors, quaternions (w, x, y, z) and 4 x 4 matrices (column by column) in the game's left-handed axes:
// x to the left seen from blue's goal, y forward, z up; uu.
export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
export const mix = (a, b, part) => a + (b - a) * part;
export const add = (a, b, scale = 1) => [a[0] + b[0] * scale, a[1] + b[1] * scale, a[2] + b[2] * scale];
export const minus = (a, b) => add(a, b, -1);
export const times = (a, scale) => [a[0] * scale, a[1] * scale, a[2] * scale];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const norm = (a) => Math.hypot(a[0], a[1], a[2]);
export const unit = (a) => times(a, 1 / (norm(a) || 1));
export const lerp = (a, b, part) => [mix(a[0], b[0], part), mix(a[1], b[1], part), mix(a[2], b[2], part)];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

// Blends two quaternions along the shorter way.
export function blend(a, b, part) {
  const sign = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] < 0 ? -1 : 1;
  const q = a.map((value, i) => mix(value, sign * b[i], part)), length = Math.hypot(...q) || 1;
  return q.map((value) => value / length);
}

// Returns a body's forward, right and up axes.
export const axes = ([w, x, y, z]) => [
  [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
  [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
  [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
];

// Places a body: its axes, stretched, at a point of the world; and a point given in the body's axes.
export const placed = ([f, r, u], pos, [sx, sy, sz] = [1, 1, 1]) =>
  new Float32Array([...times(f, sx), 0, ...times(r, sy), 0, ...times(u, sz), 0, ...pos, 1]);
export const carried = ([f, r, u], pos, [x, y, z]) => add(add(add(pos, f, x), r, y), u, z);

// Returns the camera's axes and the matrix from the world to the screen. `fov` is horizontal at 16:9, degrees.
export function lens({ pos, target, fov }, aspect) {
  const front = unit(minus(target, pos)), right = unit(cross([0, 0, 1], Math.abs(front[2]) > 0.9999 ? [0, 1, 0] : front));
  const up = cross(front, right), high = (Math.tan((fov * Math.PI) / 360) * 9) / 16, wide = high * aspect;
  const near = 12, far = 60000, depth = (far + near) / (far - near), shift = (2 * far * near) / (far - near);
  const column = (i) => [right[i] / wide, up[i] / high, front[i] * depth, front[i]], along = dot(front, pos);
  const last = [-dot(right, pos) / wide, -dot(up, pos) / high, -along * depth - shift, -along];
  return { matrix: new Float32Array([...column(0), ...column(1), ...column(2), ...last]), front, right, up, wide, high, pos };
}

// Returns a point's place on the screen in -1..1 with its distance, null behind the camera.
export function project({ matrix: m }, [x, y, z]) {
  const w = m[3] * x + m[7] * y + m[11] * z + m[15];
  return w < 20 ? null : [(m[0] * x + m[4] * y + m[8] * z + m[12]) / w, (m[1] * x + m[5] * y + m[9] * z + m[13]) / w, w];
}

// Returns the direction in which the camera sees a place on the screen, -1..1.
export const sight = (view, x, y) => unit(add(add(view.front, view.right, x * view.wide), view.up, y * view.high));
