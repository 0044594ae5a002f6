// What stands over the picture: score, clock, boost, players, names, banners, the bot's mind, curves.
import { project } from "./math.js";

export const byId = (id) => document.getElementById(id);
export const put = (id, text) => byId(id).textContent === String(text) || (byId(id).textContent = text);
export const show = (id, shown) => (byId(id).hidden = !shown);
export const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
// Makes an element with a class, and children that are elements or texts.
export function make(tag, name = "", ...children) {
  const made = Object.assign(document.createElement(tag), { className: name });
  made.append(...children);
  return made;
}
const TEAMS = ["blue", "orange"], WINS = ["Blue wins", "Orange wins"];

export class Hud {
  setup({ phases, cars, drivers, seat, title }) {
    [this.phases, this.waits] = [phases, seat === null ? "Waiting for another page" : "Waiting for this page"];
    this.plates = cars.map(({ name, team }) => make("div", `plate ${TEAMS[team]}`, name));
    const note = (i, name) => (i === seat ? "you" : drivers?.[i] && drivers[i] !== name ? drivers[i] : "");
    this.rows = cars.map(({ name, team }, i) => make("li", TEAMS[team], make("b", "", name), make("small", "", note(i, name)), make("i")));
    byId("names").replaceChildren(...this.plates);
    byId("players").replaceChildren(...this.rows);
    put("title", title || "");
    show("score", true);
  }
  // Shows a frame; `followed` is a car's number or null; `near` says that the camera sits right behind that car.
  draw(frame, view, followed, near) {
    const { score, flags } = frame, phase = this.phases[frame.phase], overtime = flags & 2, before = this.score ?? score, lead = score[1] > score[0] ? 1 : 0;
    if (score[0] !== before[0] || score[1] !== before[1]) this.scorer = TEAMS[score[1] > before[1] ? 1 : 0];
    this.score = score;
    score.forEach((goals, team) => put(TEAMS[team], goals));
    put("clock", overtime ? `+${minutes(frame.clock)}` : minutes(Math.max(0, Math.ceil(frame.clock - 0.001))));
    put("extra", overtime ? "overtime" : "");
    const [, text, style] = [
      [flags & 8, this.waits, "small"],
      [phase === "ended", score[0] === score[1] ? "Draw" : WINS[lead], TEAMS[lead]],
      [flags & 4 || phase === "replay", "Replay", "small"],
      [phase === "goal", "Goal!", this.scorer ?? ""],
      [flags & 1, "Paused", "small"],
      [frame.countdown > 0, Math.ceil(frame.countdown), "count"],
      [true, "", ""],
    ].find(([shown]) => shown);
    put("banner", text);
    byId("banner").className = style;
    show("boost", followed !== null);
    if (followed !== null) {
      put("boost-number", Math.round(frame.cars[followed].boost));
      byId("arc").style.strokeDashoffset = 314.16 * (1 - 0.0075 * frame.cars[followed].boost);
    }
    frame.cars.forEach((car, i) => this.drawCar(car, this.plates[i], this.rows[i], view, i === followed, near));
  }
  drawCar({ pos, flags, boost }, plate, row, view, followed, near) {
    const gone = Boolean(flags & 8), at = gone || (followed && near) ? null : project(view, [pos[0], pos[1], pos[2] + 95]);
    plate.hidden = !at || Math.abs(at[0]) > 1.1 || Math.abs(at[1]) > 1.1;
    if (at) {
      const [x, y, size] = [((at[0] + 1) / 2) * innerWidth, ((1 - at[1]) / 2) * innerHeight, Math.min(1, Math.max(0.7, 2200 / at[2]))];
      plate.style.transform = `translate(${x}px, ${y}px) translate(-50%, -100%) scale(${size})`;
    }
    row.lastChild.style.width = `${boost}%`;
    row.classList.toggle("followed", followed);
    row.classList.toggle("gone", gone);
  }
  say(text, level = "info", seconds = 4) {
    put("notice", text);
    byId("notice").className = level;
    show("notice", text);
    clearTimeout(this.silence);
    if (text && seconds) this.silence = setTimeout(() => show("notice", false), 1000 * seconds);
  }
  mind({ car, action, names, best, value, observed }, name) {
    const bar = (label, part, text, left, scale) => {
      const fill = make("i");
      [fill.style.width, fill.style.left] = [`${Math.min(1, Math.abs(part)) * scale}%`, `${left}%`];
      return make("div", "bar", make("span", "", label), make("u", "", fill), make("em", "", text));
    };
    show("mind", true);
    put("mind-of", name ?? car);
    byId("action").replaceChildren(...action.map((part, i) => bar(names?.[i] ?? i, part, Number(part ?? NaN).toFixed(1), 50 + Math.min(0, 50 * part), 50)));
    byId("best").replaceChildren(...(best ?? []).map(([label, part]) => bar(label, part, `${Math.round(100 * part)} %`, 0, 100)));
    put("value", typeof value === "number" ? `Value ${value.toFixed(3)}` : "");
    if (byId("seen").open)
      byId("observed").replaceChildren(...(observed ?? []).map(([label, number]) => make("tr", "", make("td", "", label), make("td", "", Number(number ?? NaN).toFixed(3)))));
  }
  // Draws each column of a training run over the first one.
  curves({ columns, rows }) {
    show("curves", true);
    byId("curves").replaceChildren(...columns.slice(1).map((name, k) => {
      const points = rows.map((row) => [row[0], row[k + 1]]).filter((point) => point.every(Number.isFinite));
      const [[left, right], [low, high]] = [0, 1].map((i) => points.map((p) => p[i])).map((list) => [Math.min(...list), Math.max(...list)]);
      const canvas = Object.assign(make("canvas"), { width: 496, height: 120 }), draw = canvas.getContext("2d");
      Object.assign(draw, { lineWidth: 3, strokeStyle: "#69b7ff", lineJoin: "round" });
      for (const [x, y] of points) draw.lineTo(4 + ((x - left) / (right - left || 1)) * 488, 114 - ((y - low) / (high - low || 1)) * 108);
      draw.stroke();
      return make("figure", "", make("figcaption", "", name.replaceAll("_", " ")), make("b", "", points.length ? Number(points.at(-1)[1].toPrecision(4)) : ""), canvas);
    }));
  }
}
