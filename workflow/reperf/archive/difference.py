"""Where two pieces of JSON differ, in one line with both values."""

import json
from itertools import zip_longest
from typing import Any

from reperf.faults import cut


def difference(held: Any, due: Any, place: str = "") -> str:  # noqa: ANN401
    """Where JSON begins to differ from what it should be, with both values; "" if nowhere."""
    if isinstance(held, dict) and isinstance(due, dict):
        steps = [(key, held.get(key), due.get(key)) for key in {**due, **held}]
    elif isinstance(held, list) and isinstance(due, list):
        steps = [(_name_of(n, *pair), *pair) for n, pair in enumerate(zip_longest(held, due), 1)]
    else:
        wrong = f"{place}: got {_shown(held)}; allowed: {_shown(due)}"
        return "" if held == due else wrong.removeprefix(": ")
    found = (
        difference(one, other, f"{place}.{key}".removeprefix(".")) for key, one, other in steps
    )
    return next(filter(None, found), "")


def _name_of(number: int, held: Any, due: Any) -> str:  # noqa: ANN401
    """An item of a list as messages name it: an entity of the metadata by its name."""
    of_due = due if isinstance(due, dict) else held
    return str(of_due.get("@id", number)) if isinstance(of_due, dict) else str(number)


def _shown(value: Any) -> str:  # noqa: ANN401
    return cut(json.dumps(value, ensure_ascii=False))
