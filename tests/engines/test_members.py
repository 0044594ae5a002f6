"""Every public member of `rlgym.api` works in every world: `docs/measured/rlgym.md` is the table."""

import pytest

from tests.support.rlgym_members import CHECKS, members
from tests.support.rlgym_worlds import WORLDS, world_of
from tools.rlgym_table import FILE, rows, text


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("check", dict.fromkeys(CHECKS.values()), ids=lambda check: check.__name__)
def test_rlgyms_members_do_what_they_do_there(check, world: str) -> None:
    with world_of(world) as one:
        check(one)


@pytest.mark.parametrize("member", members())
def test_every_public_member_of_rlgym_has_a_check(member: str) -> None:
    assert member in CHECKS, f"rlgym.api has {member}; no check in tests/support/rlgym_members.py names it"


def test_the_table_in_the_docs_is_the_one_that_the_checks_give() -> None:
    described = FILE.read_text(encoding="utf-8")
    for row in rows(None):
        assert row.partition(" | ")[0] in described, f"{row} is missing: python -m tools.rlgym_table"
    assert text(None).splitlines()[0] == described.splitlines()[0]
