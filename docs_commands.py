"""Add to the docs what the code knows: a page for every command, settings, fields, dialect and import rules.

mkdocs runs this file as a hook.
"""

import argparse
import ast
import re
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from rlgym_bridge.cli.commands import GROUPS, module_of
from rlgym_bridge.dialect import POINTS
from rlgym_bridge.training.settings import REWARDS, TrainingSettings, setting_helps

ROOT = Path(__file__).parent
FOLDER = "reference/commands"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the commands, by group, in place of the entry `Commands`."""
    pages: list[Any] = [{"All commands": f"{FOLDER}/index.md"}]
    for title, group in GROUPS.items():
        pages.append({title.capitalize(): [{name: f"{FOLDER}/{name}.md"} for name in group]})
    (reference,) = (entry["Reference"] for entry in config.nav or [] if "Reference" in entry)
    reference[0] = {"Commands": pages}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of each command, and the list of them."""
    pages = {"index": index_page()}
    for group in GROUPS.values():
        pages |= {name: command_page(name, text) for name, text in group.items()}
    for name, text in pages.items():
        files.append(File.generated(config, f"{FOLDER}/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what the code knows in place of the comments that name it, such as `<!-- dialect -->`."""
    for name, make in MADE.items():
        comment = f"<!-- {name} -->"
        if comment in markdown:
            markdown = markdown.replace(comment, make())
    return markdown


def settings_block() -> str:
    """Return the file of all settings with their defaults."""
    return f"```toml\n{(ROOT / 'training' / 'config.toml').read_text(encoding='utf-8')}```"


def rewards_table() -> str:
    """Return the standard rewards: the setting that is each one's weight, its default and its meaning."""
    helps = setting_helps()
    lines = ["| setting | default | class | reward |", "|---|---|---|---|"]
    for name, make in REWARDS.items():
        default = getattr(TrainingSettings, name)
        lines.append(f"| `{name}` | {default:g} | `{_call(make)}` | {_text(helps[name])} |")
    return "\n".join(lines)


def _call(make: Any) -> str:
    """Return how a reward is made, such as `TouchReward(strength=True)`."""
    if not isinstance(make, partial):
        return str(make.__name__)
    return f"{make.func.__name__}({', '.join(f'{name}={value}' for name, value in make.keywords.items())})"


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
    "settings": settings_block,
    "dialect": dialect_table,
    "rewards": rewards_table,
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
        "`python -m training`, `python -m training.evaluate` and so on run the commands that train, too.",
    ]
    return "\n".join(lines)


def command_page(name: str, text: str) -> str:
    """Return the page of one command as Markdown: usage, groups of options, defaults, exit status."""
    module = module_of(name)
    parser = argparse.ArgumentParser(prog=f"rlgym-bridge {name}")
    module.add_to(parser)
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
