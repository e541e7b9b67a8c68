"""Odd logs by true chance: a failure prints the seed that shows it again."""

import random

import pytest

from tests.fuzz import edited_logs

pytestmark = pytest.mark.weekly


def test_ten_thousand_edits_of_logs_give_no_wrong_number(capsys):
    seed = random.SystemRandom().randrange(2**32)
    assert edited_logs.main(["--edits", "10000", "--seed", str(seed)]) == 0, capsys.readouterr().out
