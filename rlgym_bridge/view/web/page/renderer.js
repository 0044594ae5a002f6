// Draws a frame with WebGL 2. Shaders stand in index.html.
import { add, axes, carried, clamp, lens, placed } from "./math.js";
import { makeBall, makeBody, makeFlame, makeFloor, makeGoals, makePads, makeShell, makeStands, makeWheel } from "./shapes.js";

export const BLUE = [0.035, 0.24, 0.95], ORANGE = [0.98, 0.27, 0.025];
export const ON_GROUND = 1, BOOSTING = 2, SUPERSONIC = 4, DEMOLISHED = 8;
const FOG = [0.012, 0.02, 0.032], RADIUS = 91.25, STILL = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], DECAL = 11, SHOWN = 96;
const EVERYWHERE = placed(STILL, [0, 0, 0]);

export class Renderer {
  constructor(canvas) {
    const probe = document.createElement("canvas").getContext("webgl"), name = probe?.getExtension("WEBGL_debug_renderer_info");
    const soft = name && /swiftshader|llvmpipe|software/i.test(probe.getParameter(name.UNMASKED_RENDERER_WEBGL));
    const gl = canvas.getContext("webgl2", { antialias: !soft, alpha: false, powerPreference: "high-performance" });
    if (!gl) throw new Error("This browser has no WebGL 2, which the page draws with. Try a newer one, or switch on hardware acceleration.");
    Object.assign(this, { canvas, gl, scale: 1, spins: new Map(), decals: new Float32Array(SHOWN * DECAL) });
    this.programs = {};
    for (const name of ["solid", "floor", "glass", "flame"]) this.programs[name] = this.program("solid-vertex", `${name}-fragment`);
    for (const name of ["sky", "decal"]) this.programs[name] = this.program(`${name}-vertex`, `${name}-fragment`);
    const make = { shell: makeShell(), floor: makeFloor(), goals: makeGoals([BLUE, ORANGE]), stands: makeStands(), body: makeBody(), wheel: makeWheel(), ball: makeBall(), flame: makeFlame() };
    this.shapes = Object.fromEntries(Object.entries(make).map(([name, data]) => [name, this.upload(data)]));
    this.sky = gl.createVertexArray();
    this.makeDecals();
    gl.enable(gl.DEPTH_TEST);
    gl.frontFace(gl.CW); // left-handed axes
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE);
  }

  program(...names) {
    const gl = this.gl, program = gl.createProgram();
    names.forEach((name, i) => {
      const shader = gl.createShader(i ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER);
      gl.shaderSource(shader, document.getElementById(name).textContent);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(`${name}: ${gl.getShaderInfoLog(shader)}`);
      gl.attachShader(program, shader);
    });
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const found = { program };
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const { name } = gl.getActiveUniform(program, i);
      found[name] = gl.getUniformLocation(program, name);
    }
    return found;
  }

  attribute(place, size, stride, offset, divisor = 0) {
    this.gl.enableVertexAttribArray(place);
    this.gl.vertexAttribPointer(place, size, this.gl.FLOAT, false, 4 * stride, 4 * offset);
    this.gl.vertexAttribDivisor(place, divisor);
  }

  upload(data) {
    const gl = this.gl, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    [[0, 3, 0], [1, 3, 3], [2, 4, 6]].forEach(([place, size, offset]) => this.attribute(place, size, 10, offset));
    return { array, count: data.length / 10 };
  }

  makeDecals() {
    const gl = this.gl;
    gl.bindVertexArray((this.decalArray = gl.createVertexArray()));
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
    this.attribute(0, 2, 2, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, (this.decalBuffer = gl.createBuffer()));
    gl.bufferData(gl.ARRAY_BUFFER, this.decals.byteLength, gl.DYNAMIC_DRAW);
    [[1, 3, 0], [2, 3, 3], [3, 4, 6], [4, 1, 10]].forEach(([place, size, offset]) => this.attribute(place, size, DECAL, offset, 1));
  }

  // Takes what stays the same for a match: its cars and pads.
  setup({ cars, pads }) {
    [this.cars, this.pads] = [cars, pads];
    [this.shapes.plates, this.shapes.lights] = makePads(pads).map((data) => this.upload(data));
    this.spins.clear();
  }

  use(name, view, eye) {
    const gl = this.gl, p = this.programs[name];
    gl.useProgram(p.program);
    gl.uniformMatrix4fv(p.view, false, view.matrix);
    gl.uniform3fv(p.eye ?? null, eye);
    gl.uniform3fv(p.fog ?? null, FOG);
    gl.uniform3fv(p.blue ?? null, BLUE);
    gl.uniform3fv(p.orange ?? null, ORANGE);
    gl.uniform3f(p.stretch ?? null, 1, 1, 1);
    gl.uniform1i(p.mode ?? null, 0);
    gl.uniformMatrix4fv(p.model ?? null, false, EVERYWHERE);
    return p;
  }

  shape({ array, count }) {
    this.gl.bindVertexArray(array);
    this.gl.drawArrays(this.gl.TRIANGLES, 0, count);
  }

  // Draws one frame; `lead` is the car whose place on the floor is marked. Returns the camera's lens.
  draw(frame, camera, seconds, lead = null) {
    const { gl, canvas, shapes } = this, ratio = Math.min(window.devicePixelRatio || 1, 2) * this.scale;
    const [w, h] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    gl.viewport(0, 0, w, h);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    const view = lens(camera, w / h), eye = camera.pos;
    gl.disable(gl.BLEND);
    this.drawBodies(this.use("solid", view, eye), frame, seconds);
    this.use("floor", view, eye);
    this.shape(shapes.floor);
    let p = this.use("glass", view, eye);
    gl.uniform1i(p.mode, 1);
    this.shape(shapes.stands);
    this.drawSky(view);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    this.drawDecals(view, frame, seconds, lead);
    p = this.use("glass", view, eye);
    gl.enable(gl.CULL_FACE); // walls between the camera and the field are not drawn
    this.shape(shapes.shell);
    gl.disable(gl.CULL_FACE);
    gl.uniform1i(p.mode, 3);
    this.shape(shapes.goals);
    this.drawFlames(view, eye, frame, seconds);
    gl.depthMask(true);
    return view;
  }

  drawSky(view) {
    const gl = this.gl, p = this.programs.sky, wide = (axis, scale) => axis.map((value) => value * scale);
    gl.useProgram(p.program);
    gl.uniform3fv(p.front, view.front);
    gl.uniform3fv(p.right, wide(view.right, view.wide));
    gl.uniform3fv(p.up, wide(view.up, view.high));
    gl.uniform3fv(p.fog, FOG);
    gl.bindVertexArray(this.sky);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  drawBodies(p, frame, seconds) {
    const { gl, shapes } = this, there = [0, 0];
    frame.cars.forEach((car, i) => {
      if (car.flags & DEMOLISHED) return;
      const { team, hitbox, offset, wheels } = this.cars[i], turn = axes(car.quat);
      gl.uniform3fv(p.tint, team ? ORANGE : BLUE);
      gl.uniform3fv(p.stretch, hitbox.map((side) => 1 / side ** 2));
      gl.uniformMatrix4fv(p.model, false, placed(turn, carried(turn, car.pos, offset), hitbox));
      this.shape(shapes.body);
      gl.uniform3f(p.stretch, 1, 1, 1);
      const ahead = turn[0].reduce((sum, value, k) => sum + value * car.vel[k], 0);
      const last = this.spins.get(i) ?? [seconds, 0], rolled = last[1] + ahead * clamp(seconds - last[0], 0, 0.1);
      this.spins.set(i, [seconds, rolled % 1e5]);
      for (const [x, y, z, radius] of wheels) {
        const steer = x > 0 ? clamp(car.steer, -1, 1) * 0.42 : 0, [c, s] = [Math.cos(steer), Math.sin(steer)];
        const [a, b] = [Math.cos(rolled / radius), Math.sin(rolled / radius)], [f, r, u] = turn;
        const front = add(f.map((v) => v * c), r, s), side = add(r.map((v) => v * c), f, -s);
        const wheel = [add(front.map((v) => v * a), u, -b), side, add(u.map((v) => v * a), front, b)];
        gl.uniformMatrix4fv(p.model, false, placed(wheel, carried(turn, car.pos, [x, Math.sign(y) * (hitbox[1] / 2 - 6), z]), [radius, 16, radius]));
        this.shape(shapes.wheel);
      }
    });
    gl.uniformMatrix4fv(p.model, false, EVERYWHERE);
    this.shape(shapes.plates);
    frame.pads.forEach((bits, i) => (there[i >> 2] |= bits << (8 * (i & 3))));
    gl.uniform2ui(p.there, there[0] >>> 0, there[1] >>> 0);
    gl.uniform1i(p.mode, 2);
    this.shape(shapes.lights);
    gl.uniform1i(p.mode, 1);
    gl.uniformMatrix4fv(p.model, false, placed(axes(frame.ball.quat), frame.ball.pos, [RADIUS, RADIUS, RADIUS]));
    this.shape(shapes.ball);
  }

  drawFlames(view, eye, frame, seconds) {
    const { gl } = this, p = this.use("flame", view, eye);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE);
    frame.cars.forEach((car, i) => {
      if (car.flags & DEMOLISHED || !(car.flags & BOOSTING)) return;
      const { team, hitbox, offset } = this.cars[i], turn = axes(car.quat), fast = car.flags & SUPERSONIC ? 1.35 : 1;
      const from = carried(turn, car.pos, [offset[0] - hitbox[0] * 0.5, 0, offset[2] - hitbox[2] * 0.17]);
      for (const [size, length, tint] of [[13, 110, team ? [1, 0.3, 0.05] : [0.1, 0.4, 1]], [8, 70, [1, 0.75, 0.4]]]) {
        const flicker = 1 + 0.16 * Math.sin(seconds * 83 + 7 * i) + 0.1 * Math.sin(seconds * 131 + i);
        gl.uniform3fv(p.tint, tint);
        gl.uniformMatrix4fv(p.model, false, placed(turn, from, [length * flicker * fast, size, size]));
        this.shape(this.shapes.flame);
      }
    });
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE);
  }

  // Shadows, rings and glows on the floor.
  drawDecals(view, frame, seconds, lead) {
    const { gl, decals } = this, soft = 0, ring = 1, box = 2, tints = [[0.12, 0.42, 1], [1, 0.42, 0.08]];
    let count = 0;
    const put = (x, y, z, along, ratio, color, alpha, kind) => {
      if (count < SHOWN) decals.set([x, y, z, ...along, ratio, ...color, alpha, kind], DECAL * count++);
    };
    this.pads.forEach(([x, y, , big], i) => {
      if ((frame.pads[i >> 3] >> (i & 7)) & 1) put(x, y, 2, [big ? 330 : 120, 0], 1, [1, 0.5, 0.08], big ? 0.32 : 0.2, soft);
      else if (big) put(x, y, 2, [150, 0], 1, [0.5, 0.4, 0.25], 0.25, ring);
    });
    frame.cars.forEach((car, i) => {
      if (car.flags & DEMOLISHED || car.pos[2] < 0) return;
      const { team, hitbox } = this.cars[i], [f] = axes(car.quat), flat = Math.hypot(f[0], f[1]) || 1, high = clamp(car.pos[2] / 1400, 0, 1);
      const half = hitbox[0] * (0.62 + 0.4 * high), [x, y] = car.pos;
      put(x, y, 3, [half * 2.4, 0], 1, tints[team], 0.22 * (1 - high) + 0.05, soft);
      put(x, y, 4, [(f[0] / flat) * half, (f[1] / flat) * half], 0.74, [0, 0, 0], 0.75 - 0.5 * high, box);
      if (i === lead && car.pos[2] > 120) put(x, y, 5, [90, 0], 1, tints[team], 0.4, ring);
    });
    const { pos, landing } = frame.ball, high = clamp(pos[2] / CEILING_HEIGHT, 0, 1);
    put(pos[0], pos[1], 5, [RADIUS * (1.35 + 0.6 * high), 0], 1, [0, 0, 0], 0.9 - 0.55 * high, soft);
    if (pos[2] > 150) put(pos[0], pos[1], 6, [RADIUS, 0], 1, [0.75, 0.88, 1], 0.28, ring);
    if (Number.isFinite(landing[0]) && pos[2] > 170)
      put(landing[0], landing[1], 7, [RADIUS * (1.25 + 0.12 * Math.sin(seconds * 6)), 0], 1, [1, 0.93, 0.6], 0.75, ring);
    this.use("decal", view, [0, 0, 0]);
    gl.bindVertexArray(this.decalArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.decalBuffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, decals, 0, count * DECAL);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
  }
}
const CEILING_HEIGHT = 2044;
