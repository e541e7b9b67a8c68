"""Whatever happens to a real log, a number is right or absent; tests/fuzz asks more often."""

from random import Random

import pytest

from tests.unit.logs.edited import EDITS, OF_COUNTS, OF_STEP_LOGS
from tests.unit.logs.sources import REFUSED, RIGHT, WRONG, all_sources


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_log_gives_no_other_number(edit: str):
    """Unless the edit wrote that number, or lost what says what a time is of: edited.py."""
    chance = Random(edit)
    taken = [source for source in all_sources() if source.takes(edit)]
    verdicts = set()
    for source in chance.sample(taken, min(10, len(taken))):
        other = chance.choice(all_sources()).content
        content = EDITS[edit](source.content, other, chance)
        verdicts.add(verdict := source.verdict(edit, content, other))
        assert verdict != WRONG, f"{source.name}:\n{content.decode(errors='replace')}"
    if edit in OF_STEP_LOGS | OF_COUNTS:  # what it bends is a lie, whatever it bends
        assert verdicts == {REFUSED}
    else:
        assert RIGHT in verdicts


@pytest.mark.parametrize("name", ["megatron", "ngc-pytorch-dlrm", "torchvision"])
def test_a_line_that_broke_off_gets_no_time_of_the_one_that_follows_it(name):
    """Their lines count at the beginning and tell the time behind texts of any kind."""
    [_, source] = [one for one in all_sources() if one.name == f"{name}, written"]
    lines = source.content.splitlines(keepends=True)
    for cut in range(len(lines[5])):
        content = b"".join([*lines[:5], lines[5][:cut], lines[7]])
        assert source.verdict("lines in a row are lost", content, b"") != WRONG, content.decode()
