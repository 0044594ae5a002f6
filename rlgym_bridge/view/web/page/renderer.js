// Draws a frame with WebGL 2. Shaders stand in index.html.
import { add, axes, carried, clamp, dot, lens, placed, times } from "./math.js";
import { makeBall, makeBody, makeFlame, makeFloor, makeGoals, makeLights, makePlates, makeShell, makeStands, makeWheel } from "./shapes.js";

const BLUE = [0.035, 0.24, 0.95], ORANGE = [0.98, 0.27, 0.025], FOG = [0.012, 0.02, 0.032], SHINE = [[0.12, 0.42, 1], [1, 0.42, 0.08]];
const BOOSTING = 2, SUPERSONIC = 4, DEMOLISHED = 8; // a car's flags
const PLAIN = 0, BALL = 1, STANDS = 1, LIGHTS = 2, NETS = 3; // modes of the shaders
const SOFT = 0, RING = 1, BOX = 2, DECAL = 11, MOST_DECALS = 96; // what lies on the floor, and its numbers
const RADIUS = 91.25, CEILING_Z = 2044, EVERYWHERE = placed([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 0, 0]);
const CORNER_PARTS = [[0, 3, 0], [1, 3, 3], [2, 4, 6]], DECAL_PARTS = [[1, 3, 0], [2, 3, 3], [3, 4, 6], [4, 1, 10]]; // place, size, offset

export class Renderer {
  constructor(canvas) {
    const probe = document.createElement("canvas").getContext("webgl"), name = probe?.getExtension("WEBGL_debug_renderer_info");
    const slow = name && /swiftshader|llvmpipe|software/i.test(probe.getParameter(name.UNMASKED_RENDERER_WEBGL));
    const gl = canvas.getContext("webgl2", { antialias: !slow, alpha: false, powerPreference: "high-performance" });
    if (!gl) throw new Error("This browser has no WebGL 2, which the page draws with. Try a newer one, or switch on hardware acceleration.");
    Object.assign(this, { canvas, gl, scale: 1, spins: new Map(), decals: new Float32Array(MOST_DECALS * DECAL) });
    const program = (vertex, name) => [name, this.program(`${vertex}-vertex`, `${name}-fragment`)];
    const solids = ["solid", "floor", "glass", "flame"].map((name) => program("solid", name));
    this.programs = Object.fromEntries([...solids, program("sky", "sky"), program("decal", "decal")]);
    const make = { shell: makeShell(), floor: makeFloor(), goals: makeGoals([BLUE, ORANGE]), stands: makeStands(), body: makeBody(), wheel: makeWheel(), ball: makeBall(), flame: makeFlame() };
    this.shapes = Object.fromEntries(Object.entries(make).map(([name, data]) => [name, this.upload(data)]));
    this.shapes.sky = { array: gl.createVertexArray(), count: 3 };
    this.square = this.upload(new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), [[0, 2, 0]], 2).array;
    this.decalBuffer = this.fill(this.decals, DECAL_PARTS, DECAL, 1);
    gl.enable(gl.DEPTH_TEST);
    gl.frontFace(gl.CW); // left-handed axes
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE);
  }
  program(...names) {
    const { gl } = this, program = gl.createProgram();
    names.forEach((name, i) => {
      const shader = gl.createShader(i ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER);
      gl.shaderSource(shader, document.getElementById(name).textContent);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(`${name}: ${gl.getShaderInfoLog(shader)}`);
    });
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(`${names}: ${gl.getProgramInfoLog(program)}`);
    return new Proxy({ program }, { get: (found, name) => (found[name] === undefined ? (found[name] = gl.getUniformLocation(program, name)) : found[name]) });
  }
  // Gives numbers to the vertex array that is bound, `stride` a corner, or a copy of the shape with a divisor of 1.
  fill(data, parts, stride, divisor = 0) {
    const { gl } = this;
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, divisor ? gl.DYNAMIC_DRAW : gl.STATIC_DRAW);
    for (const [place, size, offset] of parts) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 4 * stride, 4 * offset);
      gl.vertexAttribDivisor(place, divisor);
    }
    return buffer;
  }
  upload(data, parts = CORNER_PARTS, stride = 10) {
    const array = this.gl.createVertexArray();
    this.gl.bindVertexArray(array);
    this.fill(data, parts, stride);
    return { array, count: data.length / stride };
  }
  // Takes what stays the same for a match: its cars and pads.
  setup({ cars, pads }) {
    [this.cars, this.pads, this.spins] = [cars, pads, new Map()];
    [this.shapes.plates, this.shapes.lights] = [makePlates(pads), makeLights(pads)].map((data) => this.upload(data));
  }
  use(name, view) {
    const { gl } = this, p = (this.used = this.programs[name]), vectors = { eye: view.pos, fog: FOG, blue: BLUE, orange: ORANGE, stretch: [1, 1, 1] };
    gl.useProgram(p.program);
    gl.uniformMatrix4fv(p.view, false, view.matrix);
    for (const uniform in vectors) gl.uniform3fv(p[uniform], vectors[uniform]);
    return p;
  }
  // Draws a shape in a mode of the program in use, placed where `model` says.
  shape({ array, count }, mode = PLAIN, model = EVERYWHERE) {
    this.gl.uniform1i(this.used.mode, mode);
    this.gl.uniformMatrix4fv(this.used.model, false, model);
    this.gl.bindVertexArray(array);
    this.gl.drawArrays(this.gl.TRIANGLES, 0, count);
  }
  // Draws one frame; `lead` is the car whose place on the floor is marked. Returns the camera's lens.
  draw(frame, camera, seconds, lead = null) {
    const { gl, canvas, shapes } = this, ratio = Math.min(window.devicePixelRatio || 1, 2) * this.scale;
    const [w, h] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)], view = lens(camera, w / h);
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    gl.viewport(0, 0, w, h);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.disable(gl.BLEND);
    this.drawBodies(this.use("solid", view), frame, seconds);
    this.use("floor", view);
    this.shape(shapes.floor);
    this.use("glass", view);
    this.shape(shapes.stands, STANDS);
    const sky = this.use("sky", view);
    for (const [axis, scale] of [["front", 1], ["right", view.wide], ["up", view.high]]) gl.uniform3fv(sky[axis], times(view[axis], scale));
    this.shape(shapes.sky);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    this.drawDecals(view, frame, seconds, lead);
    this.use("glass", view);
    gl.enable(gl.CULL_FACE); // walls between the camera and the field are not drawn
    this.shape(shapes.shell);
    gl.disable(gl.CULL_FACE);
    this.shape(shapes.goals, NETS);
    this.drawFlames(this.use("flame", view), frame, seconds);
    gl.depthMask(true);
    return view;
  }
  drawBodies(p, frame, seconds) {
    const { gl, shapes } = this, there = [0, 0];
    frame.cars.forEach((car, i) => {
      if (car.flags & DEMOLISHED) return;
      const { team, hitbox, offset, wheels } = this.cars[i], turn = axes(car.quat), [f, r, u] = turn, [then, far] = this.spins.get(i) ?? [seconds, 0];
      gl.uniform3fv(p.tint, team ? ORANGE : BLUE);
      gl.uniform3fv(p.stretch, hitbox.map((side) => 1 / side ** 2));
      this.shape(shapes.body, PLAIN, placed(turn, carried(turn, car.pos, offset), hitbox));
      gl.uniform3f(p.stretch, 1, 1, 1);
      const rolled = (far + dot(f, car.vel) * clamp(seconds - then, 0, 0.1)) % 1e5;
      this.spins.set(i, [seconds, rolled]);
      for (const [x, y, z, radius] of wheels) {
        const steer = x > 0 ? car.steer * 0.42 : 0, roll = rolled / radius;
        const [c, s, a, b] = [Math.cos(steer), Math.sin(steer), Math.cos(roll), Math.sin(roll)], front = add(times(f, c), r, s);
        const wheel = [add(times(front, a), u, -b), add(times(r, c), f, -s), add(times(u, a), front, b)];
        const hub = carried(turn, car.pos, [x, Math.sign(y) * (hitbox[1] / 2 - 6), z]);
        this.shape(shapes.wheel, PLAIN, placed(wheel, hub, [radius, 16, radius]));
      }
    });
    this.shape(shapes.plates);
    frame.pads.forEach((bits, i) => (there[i >> 2] |= bits << (8 * (i & 3))));
    gl.uniform2ui(p.there, there[0] >>> 0, there[1] >>> 0);
    this.shape(shapes.lights, LIGHTS);
    this.shape(shapes.ball, BALL, placed(axes(frame.ball.quat), frame.ball.pos, [RADIUS, RADIUS, RADIUS]));
  }
  drawFlames(p, frame, seconds) {
    const { gl } = this;
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE);
    frame.cars.forEach((car, i) => {
      if (car.flags & DEMOLISHED || !(car.flags & BOOSTING)) return;
      const { team, hitbox, offset } = this.cars[i], turn = axes(car.quat), flicker = 1 + 0.16 * Math.sin(seconds * 83 + 7 * i) + 0.1 * Math.sin(seconds * 131 + i);
      const long = flicker * (car.flags & SUPERSONIC ? 1.35 : 1), from = carried(turn, car.pos, [offset[0] - hitbox[0] * 0.5, 0, offset[2] - hitbox[2] * 0.17]);
      for (const [wide, length, tint] of [[13, 110, SHINE[team]], [8, 70, [1, 0.75, 0.4]]]) {
        gl.uniform3fv(p.tint, tint);
        this.shape(this.shapes.flame, PLAIN, placed(turn, from, [length * long, wide, wide]));
      }
    });
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE);
  }
  // Draws shadows, rings and glows on the floor.
  drawDecals(view, frame, seconds, lead) {
    const { gl, decals } = this, { pos, landing } = frame.ball, high = clamp(pos[2] / CEILING_Z, 0, 1);
    let count = 0;
    const put = (kind, x, y, z, along, ratio, color, alpha) => count < MOST_DECALS && decals.set([x, y, z, ...along, ratio, ...color, alpha, kind], DECAL * count++);
    this.pads.forEach(([x, y, , big], i) => {
      if ((frame.pads[i >> 3] >> (i & 7)) & 1) put(SOFT, x, y, 2, [big ? 330 : 120, 0], 1, [1, 0.5, 0.08], big ? 0.32 : 0.2);
      else if (big) put(RING, x, y, 2, [150, 0], 1, [0.5, 0.4, 0.25], 0.25);
    });
    frame.cars.forEach((car, i) => {
      if (car.flags & DEMOLISHED) return;
      const { team, hitbox } = this.cars[i], [f] = axes(car.quat), up = clamp(car.pos[2] / 1400, 0, 1), half = hitbox[0] * (0.62 + 0.4 * up), [x, y] = car.pos;
      put(SOFT, x, y, 3, [half * 2.4, 0], 1, SHINE[team], 0.27 - 0.22 * up);
      put(BOX, x, y, 4, times([f[0], f[1], 0], half / (Math.hypot(f[0], f[1]) || 1)).slice(0, 2), 0.74, [0, 0, 0], 0.75 - 0.5 * up);
      if (i === lead && car.pos[2] > 120) put(RING, x, y, 5, [90, 0], 1, SHINE[team], 0.4);
    });
    put(SOFT, pos[0], pos[1], 5, [RADIUS * (1.35 + 0.6 * high), 0], 1, [0, 0, 0], 0.9 - 0.55 * high);
    if (pos[2] > 150) put(RING, pos[0], pos[1], 6, [RADIUS, 0], 1, [0.75, 0.88, 1], 0.28);
    if (Number.isFinite(landing[0]) && pos[2] > 170) put(RING, landing[0], landing[1], 7, [RADIUS * (1.25 + 0.12 * Math.sin(seconds * 6)), 0], 1, [1, 0.93, 0.6], 0.75);
    this.use("decal", view);
    gl.bindVertexArray(this.square);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.decalBuffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, decals, 0, count * DECAL);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
  }
}
