"""Add to the docs what stands in the code: commands, settings, rewards, fields, dialect and import rules.

`python docs_commands.py [FOLDER]` writes all pages to `FOLDER/pages`, in `build` by default. Zensical makes
`FOLDER/site` of them.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import yaml

from rlgym_bridge.cli.commands import GROUPS, make_parser, module_of
from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.training.settings import REWARDS

ROOT = Path(__file__).parent
FOLDER = "reference/commands"
REWARD_GROUP = "Rewards"
TABLES = "Tables"
"""Titles of two groups of settings."""


def write_pages(folder: Path) -> Path:
    """Write `pages/`, and the configuration that builds `site/`, to a folder; return the latter's path."""
    pages = folder / "pages"
    for old in (pages, folder / "site"):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for page in pages.rglob("*.md"):
        page.write_text(fill_comments(page.read_text(encoding="utf-8")), encoding="utf-8")
    (pages / FOLDER).mkdir(parents=True)
    (pages / FOLDER / "index.md").write_text(index_page(), encoding="utf-8")
    for group in GROUPS.values():
        for name, command in group.items():
            (pages / FOLDER / f"{name}.md").write_text(command_page(name, command), encoding="utf-8")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    config |= {"docs_dir": "pages", "site_dir": "site", "nav": fill_navigation(config["nav"])}
    (mkdocstrings,) = (one["mkdocstrings"] for one in config["plugins"] if "mkdocstrings" in one)
    mkdocstrings["handlers"]["python"]["paths"] = [str(ROOT)]
    written = folder / "zensical.yml"
    written.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return written


def fill_navigation(nav: list[Any]) -> list[Any]:
    """Return the navigation with the pages of the commands, by group, in place of the entry `Commands`."""
    pages: list[Any] = [{"All commands": f"{FOLDER}/index.md"}]
    for title, group in GROUPS.items():
        pages.append({title.capitalize(): [{name: f"{FOLDER}/{name}.md"} for name in group]})
    (reference,) = (entry["Reference"] for entry in nav if "Reference" in entry)
    reference[0] = {"Commands": pages}
    return nav


def fill_comments(markdown: str) -> str:
    """Put text from the code in place of the comments that name it, such as `<!-- dialect -->`."""
    for name, make in MADE.items():
        comment = f"<!-- {name} -->"
        if comment in markdown:
            markdown = markdown.replace(comment, make())
    return markdown


def settings_tables() -> str:
    """Return the settings in tables, one for each group of `training/config.toml`, with their defaults."""
    lines: list[str] = []
    for title, settings in _groups_of_settings().items():
        if lines:
            lines.append("")
        lines += [f"### {title}", "", "| setting | default | meaning |", "|---|---|---|"]
        lines += [f"| `{name}` | `{value}` | {_text(note)} |" for name, value, note in settings]
    return "\n".join(lines)


def rewards_table() -> str:
    """Return the rewards that have a weight in the settings: class, what it pays, range and default."""
    lines = ["| weight | class | pays | range | default |", "|---|---|---|---|---|"]
    for name, value, note in _groups_of_settings()[REWARD_GROUP]:
        if name in REWARDS:  # not a switch, such as zero_sum
            made = REWARDS[name]()
            kind, values = type(made).__name__, range_of_reward(made)
            lines.append(f"| `{name}` | `{kind}` | {_text(note)} | {values} | `{value}` |")
    return "\n".join(lines)


def range_of_reward(made: Any) -> str:
    """Return the least and the largest value of a reward, as the docstring of its formula has them."""
    (numbers,) = re.findall(r"^Return (.+?),? for every car", type(made)._formula.__doc__)
    return str(numbers)


def _groups_of_settings() -> dict[str, list[tuple[str, str, str]]]:
    """Return the settings by group: name, default and note of each, as `training/config.toml` has them."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    text = (ROOT / "training" / "config.toml").read_text(encoding="utf-8")
    title = ""
    for line in text.splitlines()[1:]:
        if setting := re.match(r"(\w+) = (.+?) +# (.+)", line):
            groups[title].append((setting[1], setting[2], setting[3]))
        elif table := re.match(r"# (\[\w+\]): (.+)", line):
            groups.setdefault(TABLES, []).append((table[1], "none", table[2]))
        elif heading := re.match(r"# ([\w ]+)(.*)", line):
            title = heading[1].strip().capitalize()
            groups[title] = []
    return groups


def dialect_table() -> str:
    """Return the points of the dialect and their values."""
    lines = ["| point | values | meaning |", "|---|---|---|"]
    for name, point in POINTS.items():
        values = ", ".join(f"`{value}`" for value in point.values)
        lines.append(f"| `{name}` | {values} | {_text(point.meaning)} |")
    return "\n".join(lines)


def fields_table(name: str) -> str:
    """Return the fields of `MatchState` in one of its two lists, with shapes and what their comments say.

    Args:
        name: `MATCH_FIELDS` or `CAR_FIELDS`.
    """
    source = (ROOT / "rlgym_bridge" / "state.py").read_text(encoding="utf-8")
    listed = source.split(f"{name}: Final = (", 1)[1].split("\n)", 1)[0]
    lines = ["| field | shape | meaning |", "|---|---|---|"]
    for field, rest, meaning in re.findall(r'Field\("(\w+)"(.*?)\),  # (.*)', listed):
        shape = (re.search(r"\(.*\)", rest) or ["()"])[0]
        lines.append(f"| `{field}` | `{shape}` | {_text(meaning)} |")
    return "\n".join(lines)


def rooms_table() -> str:
    """Return which room imports from which, as `tests/test_imports.py` holds it."""
    source = (ROOT / "tests" / "test_imports.py").read_text(encoding="utf-8")
    (rooms,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ROOMS"
        for node in [_with_sets(node)]
    )
    lines = ["| room | imports from |", "|---|---|"]
    for room, below in rooms.items():
        lines.append(f"| `{room}` | {', '.join(f'`{name}`' for name in sorted(below)) or 'none'} |")
    return "\n".join(lines)


def _with_sets(node: ast.Assign) -> ast.Assign:
    """Replace `set()` by an empty tuple, so that the table is a literal."""

    class _Sets(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.AST:
            return ast.copy_location(ast.Tuple([], ast.Load()), call)

    return _Sets().visit(node)


MADE = {
    "settings": settings_tables,
    "rewards": rewards_table,
    "dialect": dialect_table,
    "fields: match": lambda: fields_table("MATCH_FIELDS"),
    "fields: car": lambda: fields_table("CAR_FIELDS"),
    "rooms": rooms_table,
}
"""Text that stands in the pages in place of a comment."""


def index_page() -> str:
    """Return the page that lists all commands by group."""
    lines = ["# Commands", "", "All commands are part of one program, `rlgym-bridge`. "
             "`rlgym-bridge COMMAND --help` prints what these pages show.", ""]  # fmt: skip
    for title, group in GROUPS.items():
        lines += [f"## {title.capitalize()}", "", "| command | purpose |", "|---|---|"]
        lines += [f"| [`{name}`]({name}.md) | {text} |" for name, text in group.items()]
        lines.append("")
    lines += [
        "Exit status of every command: 0 fine, 1 a failure was found, 2 bad usage or input. "
        "A page says so where a command differs.",
        "",
        "In a clone `python -m training`, `training.evaluate`, `training.average` and `training.imitate` run "
        "`train` and these commands, too.",
    ]
    return "\n".join(lines)


def command_page(name: str, text: str) -> str:
    """Return the page of one command as Markdown: usage, groups of options, defaults, exit status."""
    module = module_of(name)
    parser = make_parser(name, f"rlgym-bridge {name}")
    lines = [f"# {name}", "", _text(parser.description or text), ""]
    usage = re.sub(r"\s+", " ", parser.format_usage()).removeprefix("usage: ")
    lines += ["```text", *_wrapped(usage), "```", ""]
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if not actions:
            continue
        title = {"positional arguments": "Arguments", "options": "Options"}.get(
            group.title or "", (group.title or "").capitalize()
        )
        lines += [f"## {title}", ""]
        if group.description:
            lines += [_text(group.description), ""]
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| {_names(action, parser)} | {_meaning(action, parser)} |" for action in actions]
        lines.append("")
    if parser.epilog:
        lines += ["## Notes", "", "```text", parser.epilog, "```", ""]
    status = getattr(module, "STATUS", "0 fine, 1 a failure was found, 2 bad usage or input")
    lines += ["## Exit status", "", f"{_text(status)}.", ""]
    return "\n".join(lines)


def _names(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """Return an option as it is written on a command line, in code."""
    formatter = parser._get_formatter()
    if not action.option_strings:
        words = [str(action.metavar or action.dest)]
    elif action.nargs == 0:
        words = list(action.option_strings)
    else:
        value = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
        words = [f"{option} {value}" for option in action.option_strings]
    return "<br>".join(f"<code>{escape(word).replace('|', '&#124;')}</code>" for word in words)


def _meaning(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """Return an option's help with its default."""
    return _text(parser._get_formatter()._expand_help(action)) if action.help else ""


def _text(text: str) -> str:
    """Return plain text so that Markdown shows it as it is, on one line."""
    plain = re.sub(r"\s+", " ", text).strip()
    parts = plain.split("`")  # what stands in backticks stays code
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"([*_|<>\[\]])", r"\\\1", parts[place])
    for place in range(1, len(parts), 2):
        parts[place] = parts[place].replace("|", "&#124;")
    return "`".join(parts)


def _wrapped(usage: str) -> list[str]:
    """Return the usage in lines of at most 90 characters, broken between options."""
    words = re.findall(r"\[[^\[\]]*(?:\[[^\]]*\])?[^\[\]]*\]|\([^)]*\)|\S+", usage)
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > 88 and lines[-1]:
            lines.append("    ")
        lines[-1] += word if lines[-1] in ("", "    ") else f" {word}"
    return lines


def main() -> int:
    """Build the site; return zensical's exit status, where a warning is an error."""
    config = write_pages(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build")
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)]
    return subprocess.run(build, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
