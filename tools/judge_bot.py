"""Judge a bot: matches of each team size, skills, delays, hitboxes and RocketSim 2.2.1, as tables.

    python -m tools.judge_bot runs/further --last bot/policy --out build/judged
    python -m tools.judge_bot bot/policy --matches 20 --only matches skills

Matches last a minute, whole ones five. Opponents are Chaser, `charger`, the bot that shipped last, and
three scripted bots of `tests/support/judging_bots.py`, which no training meets. The tables go to the terminal
and, with `--out`, to `judged.md`, with their numbers in `judged.json`. A win rate counts a draw as half. On
two cores a network alone (`--selection sample`) takes 40 minutes, and a bot that searches many hours: choose
tables, sizes and fewer matches. Each row is shown as soon as it is there.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from rlbot import flat

from rlgym_bridge.components import ball_ahead
from rlgym_bridge.components.batch_form import observe
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.policy.manifest import SELECTIONS
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.training.evaluate import check_numbers, evaluate
from rlgym_bridge.training.runs.checkpoints import STATE_FILE
from rlgym_bridge.training.scenes import SCENES, evaluate_scenes
from tests.parity.world import drive, make_match
from tests.support import judging_bots
from tools.tool import run_tool

SIZES: Final = (1, 2, 3)
OPPONENTS: Final = ("chaser", "charger", "last", "keeper", "striker", "rammer")
DELAYS: Final = (0, 2, 4, 6, 8)  # ticks
_PACKETS: Final = 2000  # that are timed

Row = dict[str, Any]


class Judge:
    """The bot, how many matches it plays, and the rows of all tables."""

    def __init__(
        self, bot: str, last: str, matches: int, seed: int, processes: int, sizes: Sequence[int] = SIZES,
        against: Sequence[str] = OPPONENTS, selection: str | None = None,
    ) -> None:  # fmt: skip
        self._against = against
        self._bot, self._last, self._matches, self._team_sizes = bot, last, matches, sizes
        self._seed, self._processes, self._selection = seed, processes, selection

    def _play(self, against: str | PlayerSpec, name: str, **more: Any) -> Row:
        one = evaluate(
            self._bot, against, self._matches, seed=self._seed, processes=self._processes,
            selection=[self._selection, None], **more,
        )  # fmt: skip
        return {"against": name, **one.to_json()}

    def matches(self) -> Iterator[Row]:
        """Play every opponent in each team size."""
        for name in self._against:
            make: Any = getattr(judging_bots, name, None)
            shown = self._last if name == "last" else name
            for size in self._team_sizes:
                row = self._play(shown if make is None else make(), shown, team_size=size)
                yield {"size": f"{size}v{size}", **row}

    def whole_matches(self) -> Iterator[Row]:
        """Play matches of five minutes, the game's own length, in each team size."""
        for name in [one for one in ("chaser", "last") if one in self._against]:
            player = self._last if name == "last" else name
            for size in self._team_sizes:
                row = self._play(player, player, team_size=size, seconds=300.0)
                yield {"size": f"{size}v{size}", **row}

    def skills(self) -> Iterator[Row]:
        """Play all scenes in 1v1."""
        trials = 5 * self._matches
        for scene in SCENES:
            (one,) = evaluate_scenes(
                self._bot, [scene], trials, seed=self._seed, team_size=1, processes=self._processes,
                selection=self._selection,
            )  # fmt: skip
            yield one.to_json()

    def simulators(self) -> Iterator[Row]:
        """Play Chaser in RocketSim 2.2.1 in each team size; `matches` are in RocketSim 3."""
        for size in self._team_sizes:
            row = self._play("chaser", "chaser", team_size=size, simulator=ROCKETSIM2)
            yield {"simulator": ROCKETSIM2, "size": f"{size}v{size}", **row}

    def delays(self) -> Iterator[Row]:
        """Play Chaser in 1v1 with actions that act some ticks late; Chaser's are one tick late."""
        for delay in DELAYS:
            row = self._play("chaser", "chaser", team_size=1, action_delay=[delay, 1])
            yield {"ticks of delay": delay, **row}

    def hitboxes(self) -> Iterator[Row]:
        """Play Chaser in 1v1 with each hitbox; Chaser has an Octane."""
        for hitbox in HITBOX_NAMES:
            yield {"hitbox": hitbox, **self._play("chaser", "chaser", team_size=1, hitboxes=[hitbox, None])}

    def sizes(self) -> Iterator[Row]:
        """Weigh the policy folder, and time it from packet to control vector for one car in 3v3."""
        files = [file for file in Path(policy_path(self._bot)).rglob("*") if file.is_file()]
        weight = sum(file.stat().st_size for file in files if file.name != STATE_FILE)
        for name in ("rocketsim_batch", "numpy"):
            with ThreadPoolExecutor(1) as pool:  # each thread makes its own forecasts of the ball
                median, slow = pool.submit(_time_packets, self._bot, name == "numpy").result()
            yield {
                "folder, MB": weight / 1e6, "forecasts by": name, "packet, ms": median,
                "99th percentile, ms": slow,
            }  # fmt: skip


def _time_packets(bot: str, alone: bool) -> tuple[float, float]:
    """Return the median and the 99th percentile of the time from a packet's bytes to controls, ms.

    One car of a 3v3 decides at each packet, by numpy and without a state estimator; `alone` as where
    `rocketsim_batch`, which forecasts the ball and searches, is not installed.
    """
    with patch.object(ball_ahead, "find_spec", return_value=None) if alone else nullcontext():
        return _time_every_packet(bot, "sample" if alone else None)


def _time_every_packet(bot: str, selection: str | None) -> tuple[float, float]:
    spec = load_player(bot, selection=selection)
    components, policy = spec.components(), spec.policy()
    policy.reset([0], 0)
    decoder = Decoder(field_info(), flat.MatchConfiguration(mutators=flat.MutatorSettings()), False)
    match = make_match(max(SIZES), seed=0, seconds=1e6, thrust=True)
    times = []
    for packet in itertools.islice(drive(match, seed=0), _PACKETS):
        data = flat.CorePacket(packet).pack()
        began = time.perf_counter()
        state = decoder.update(flat.CorePacket.unpack(data).message)
        obs = None if components.obs_builder is None else observe(components.obs_builder, [0], state)
        components.parser.parse_batch(policy.act(obs, state))
        times.append(1e3 * (time.perf_counter() - began))
        decoder.clear_touches()
    median, slow = np.percentile(times, (50, 99)).tolist()
    return median, slow


_TABLES: Final[dict[str, Callable[[Judge], Iterator[Row]]]] = {
    "matches": Judge.matches, "whole_matches": Judge.whole_matches, "skills": Judge.skills,
    "simulators": Judge.simulators, "delays": Judge.delays, "hitboxes": Judge.hitboxes, "sizes": Judge.sizes,
}  # fmt: skip


def as_table(rows: Sequence[Row]) -> str:
    """Return rows as a table in Markdown: results of matches, of skills, or plain numbers."""
    shown = []
    for row in rows:
        cells = {name: value for name, value in row.items() if name not in _MERGED}
        if "win_rate" in row:
            low, high = row["interval"]
            cells["won, drawn, lost"] = f"{row['won']}, {row['drawn']}, {row['lost']}"
            cells["goals"] = " : ".join(map(str, row["goals"]))
            cells["win rate, 95 %"] = f"{row['win_rate']:.1%} ({low:.1%} to {high:.1%})"
        elif "share" in row:
            low, high = row["interval"]
            cells["solved, 95 %"] = f"{row['share']:.0%} ({low:.0%} to {high:.0%}) of {row['trials']}"
            cells["median_seconds"] = cells["median_seconds"] or ""
        shown.append(
            {name: f"{one:.3g}" if isinstance(one, float) else str(one) for name, one in cells.items()}
        )
    head = list(shown[0])
    lines = ["| " + " | ".join(row[name] for name in head) + " |" for row in shown]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines])


_MERGED: Final = (
    "matches", "won", "drawn", "lost", "goals", "win_rate", "interval", "share", "trials", "solved",
    "solved_when", "horizon_seconds", "median_interval",
)  # fmt: skip


def main(words: Sequence[str]) -> None:
    """Judge a bot, and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bot", help="policy folder, or training run")
    parser.add_argument(
        "--last", default="lab/former-bot", help="the bot that shipped last (default: %(default)s)"
    )
    parser.add_argument(
        "--matches", type=int, default=400, help="of a pairing; five times as many trials of a skill"
    )
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES, help="of the teams")
    parser.add_argument(
        "--against", nargs="+", choices=OPPONENTS, default=OPPONENTS, help="opponents of the matches"
    )
    parser.add_argument("--selection", choices=SELECTIONS, help="of its actions: without its search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=_TABLES, default=list(_TABLES), help="these tables")
    parser.add_argument("--out", type=Path, help="folder for judged.md and judged.json")
    options = parser.parse_args(words)
    check_numbers(options.matches, 60.0, seed=(options.seed, 0), processes=(options.processes, 1))
    for bot in (options.bot, options.last):
        load_player(policy_path(bot))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        if there := [*options.out.glob("judged.*")]:
            raise FileExistsError(f"{there[0]} is there already, expected another folder with --out")
    judge = Judge(
        options.bot, options.last, options.matches, options.seed, options.processes, options.sizes,
        options.against, options.selection,
    )  # fmt: skip
    found: dict[str, list[Row]] = {}
    for name in dict.fromkeys(options.only):
        found[name] = []
        for row in _TABLES[name](judge):
            found[name].append(row)
            print(as_table([row]).splitlines()[-1], file=sys.stderr, flush=True)
            if options.out is not None:
                tables = [f"{each}:\n\n{as_table(rows)}\n" for each, rows in found.items()]
                (options.out / "judged.md").write_text("\n".join(tables), encoding="utf-8")
                (options.out / "judged.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
        print(f"{name}:\n\n{as_table(found[name])}\n", flush=True)


if __name__ == "__main__":
    run_tool(main)
