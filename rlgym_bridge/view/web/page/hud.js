// What stands over the picture: score, clock, boost, players, names, banners, the bot's mind, curves.
import { project } from "./math.js";

export const byId = (id) => document.getElementById(id);
export const put = (id, text) => byId(id).textContent === String(text) || (byId(id).textContent = text);
export const show = (id, shown) => (byId(id).hidden = !shown);
export const make = (tag, name = "", text = "") => Object.assign(document.createElement(tag), { className: name, textContent: text });
export const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
const TEAMS = ["blue", "orange"];

export class Hud {
  setup(setup) {
    this.phases = setup.phases;
    [this.plates, this.rows] = [[], []];
    byId("names").replaceChildren();
    byId("players").replaceChildren();
    for (const [i, { name, team }] of setup.cars.entries()) {
      this.plates.push(byId("names").appendChild(make("div", `plate ${TEAMS[team]}`, name)));
      const row = byId("players").appendChild(make("li", TEAMS[team])), driver = setup.drivers?.[i];
      row.append(make("b", "", name), make("small", "", i === setup.seat ? "you" : driver && driver !== name ? driver : ""), make("i"));
      this.rows.push(row);
    }
    put("title", setup.title || "");
    show("score", true);
  }

  // Shows a frame; `followed` is a car's number or null, `seat` the car that this page drives.
  draw(frame, view, followed, seat) {
    put("blue", frame.score[0]);
    put("orange", frame.score[1]);
    put("clock", `${frame.flags & 2 ? "+" : ""}${minutes(frame.flags & 2 ? frame.clock : Math.ceil(frame.clock - 0.001))}`);
    put("extra", frame.flags & 2 ? "overtime" : "");
    const phase = this.phases[frame.phase], winner = Math.sign(frame.score[1] - frame.score[0]);
    const texts = [
      [frame.flags & 8, "Waiting for this page", ""],
      [phase === "ended", winner ? `${winner > 0 ? "Orange" : "Blue"} wins` : "Draw", winner > 0 ? "orange" : "blue"],
      [frame.flags & 4 || phase === "replay", "Replay", "small"],
      [phase === "goal", "Goal!", this.scorer ?? ""],
      [frame.countdown > 0, Math.ceil(frame.countdown), "count"],
      [frame.flags & 1, "Paused", "small"],
    ];
    const found = texts.find(([shown]) => shown), banner = byId("banner");
    show("banner", found);
    if (found) [banner.textContent, banner.className] = [found[1], found[2]];
    const before = this.score ?? frame.score;
    if (frame.score[0] !== before[0] || frame.score[1] !== before[1]) this.scorer = frame.score[1] > before[1] ? "orange" : "blue";
    this.score = frame.score;
    show("boost", followed !== null);
    if (followed !== null) {
      const boost = frame.cars[followed].boost;
      put("boost-number", Math.round(boost));
      byId("arc").style.strokeDashoffset = 314.16 * (1 - (0.75 * boost) / 100);
    }
    frame.cars.forEach((car, i) => this.drawCar(car, i, view, i === followed, i === seat));
  }

  drawCar(car, i, view, followed, driven) {
    const at = car.flags & 8 || driven ? null : project(view, [car.pos[0], car.pos[1], car.pos[2] + 95]), plate = this.plates[i];
    plate.hidden = !at || Math.abs(at[0]) > 1.1 || Math.abs(at[1]) > 1.1;
    if (!plate.hidden) {
      const size = Math.min(1, Math.max(0.62, 2200 / at[2]));
      plate.style.transform = `translate(${((at[0] + 1) / 2) * innerWidth}px, ${((1 - at[1]) / 2) * innerHeight}px) translate(-50%, -100%) scale(${size})`;
    }
    this.rows[i].lastChild.style.width = `${car.boost}%`;
    this.rows[i].classList.toggle("followed", followed);
    this.rows[i].classList.toggle("gone", Boolean(car.flags & 8));
  }

  say(text, level = "info", seconds = 4) {
    put("notice", text);
    byId("notice").className = level;
    show("notice", text);
    clearTimeout(this.silence);
    if (text && seconds) this.silence = setTimeout(() => show("notice", false), 1000 * seconds);
  }

  mind({ car, action, names, best, value, observed }, name) {
    const bar = (label, part, text, both) => {
      const row = make("div", both ? "bar both" : "bar"), fill = make("i");
      fill.style.width = `${Math.abs(part) * (both ? 50 : 100)}%`;
      if (both) fill.style.left = part < 0 ? `${50 + part * 50}%` : "50%";
      row.append(make("span", "", label), Object.assign(make("u"), {}), make("em", "", text));
      row.children[1].append(fill);
      return row;
    };
    show("mind", true);
    put("mind-of", name ?? car);
    byId("action").replaceChildren(...action.map((part, i) => bar(names?.[i] ?? i, part, Number(part).toFixed(1), true)));
    byId("best").replaceChildren(...(best ?? []).map(([label, part]) => bar(label, part, `${Math.round(100 * part)} %`)));
    put("value", value === null || value === undefined ? "" : `Value ${value.toFixed(3)}`);
    if (!byId("mind").querySelector("details").open) return;
    byId("observed").replaceChildren(...(observed ?? []).map(([label, number]) => {
      const row = make("tr");
      row.append(make("td", "", label), make("td", "", Number(number).toFixed(3)));
      return row;
    }));
  }

  // Draws each column of a training run over the first one.
  curves({ columns, rows }) {
    show("curves", true);
    byId("curves").replaceChildren(...columns.slice(1).map((name, k) => {
      const points = rows.map((row) => [row[0], row[k + 1]]).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
      const figure = make("figure"), canvas = make("canvas"), [w, h] = [248, 60];
      [canvas.width, canvas.height] = [2 * w, 2 * h];
      figure.append(make("figcaption", "", name), make("b", "", points.length ? Number(points.at(-1)[1].toPrecision(4)) : ""), canvas);
      const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)], draw = canvas.getContext("2d");
      const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
      Object.assign(draw, { lineWidth: 3, strokeStyle: "#69b7ff", lineJoin: "round" });
      points.forEach(([x, y]) => draw.lineTo(4 + ((x - left) / (right - left || 1)) * (2 * w - 8), 2 * h - 6 - ((y - low) / (high - low || 1)) * (2 * h - 12)));
      draw.stroke();
      return figure;
    }));
  }
}
