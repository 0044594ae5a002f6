// Vectors, quaternions (w, x, y, z) and 4 x 4 matrices (column by column) in the game's left-handed axes:
// x to the right seen from blue's goal, y forward, z up; uu.

export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
export const mix = (a, b, part) => a + (b - a) * part;
export const add = (a, b, scale = 1) => [a[0] + b[0] * scale, a[1] + b[1] * scale, a[2] + b[2] * scale];
export const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const times = (a, scale) => [a[0] * scale, a[1] * scale, a[2] * scale];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const norm = (a) => Math.hypot(a[0], a[1], a[2]);
export const unit = (a) => times(a, 1 / (norm(a) || 1));
export const lerp = (a, b, part) => [mix(a[0], b[0], part), mix(a[1], b[1], part), mix(a[2], b[2], part)];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

// Blends two quaternions along the shorter way.
export function blend(a, b, part) {
  const sign = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] < 0 ? -1 : 1;
  const q = [0, 1, 2, 3].map((i) => mix(a[i], sign * b[i], part));
  const length = Math.hypot(...q) || 1;
  return q.map((value) => value / length);
}

// Returns the car's forward, right and up axes.
export function axes([w, x, y, z]) {
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
    [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
    [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
  ];
}

// Places a body: its axes, stretched, at a point of the world.
export function placed([f, r, u], pos, [sx, sy, sz] = [1, 1, 1]) {
  return new Float32Array([
    f[0] * sx, f[1] * sx, f[2] * sx, 0, r[0] * sy, r[1] * sy, r[2] * sy, 0,
    u[0] * sz, u[1] * sz, u[2] * sz, 0, pos[0], pos[1], pos[2], 1,
  ]);
}

export const carried = ([f, r, u], pos, [x, y, z]) => add(add(add(pos, f, x), r, y), u, z);

// Returns the camera's axes and the matrix from the world to the screen. `fov` is horizontal at 16:9, degrees.
export function lens({ pos, target, fov }, aspect) {
  const front = unit(minus(target, pos));
  const right = unit(cross([0, 0, 1], Math.abs(front[2]) > 0.9999 ? [front[0], front[1] + 0.01, 0] : front));
  const up = cross(front, right), high = (Math.tan((fov * Math.PI) / 360) * 9) / 16, wide = high * aspect;
  const near = 12, far = 60000, depth = (far + near) / (far - near), shift = (2 * far * near) / (far - near);
  const matrix = new Float32Array(16);
  for (let i = 0; i < 3; i++) matrix.set([right[i] / wide, up[i] / high, front[i] * depth, front[i]], 4 * i);
  matrix.set([-dot(right, pos) / wide, -dot(up, pos) / high, -dot(front, pos) * depth - shift, -dot(front, pos)], 12);
  return { matrix, front, right, up, wide, high, pos };
}

// Returns a point's place on the screen in -1..1 with its distance, null behind the camera.
export function project({ matrix: m }, [x, y, z]) {
  const w = m[3] * x + m[7] * y + m[11] * z + m[15];
  if (w < 20) return null;
  return [(m[0] * x + m[4] * y + m[8] * z + m[12]) / w, (m[1] * x + m[5] * y + m[9] * z + m[13]) / w, w];
}

// Returns the direction in which the camera sees a place on the screen, -1..1.
export const sight = (view, x, y) => unit(add(add(view.front, view.right, x * view.wide), view.up, y * view.high));
