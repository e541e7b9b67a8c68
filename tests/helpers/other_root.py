"""Systems, trainers and locks of another folder than reperf's own."""

from pathlib import Path

import pytest
from reperf.building.code import imported_by
from reperf.builds import build
from reperf.systems import system

PLACES = ("SYSTEMS", "TRAINERS", "ENVIRONMENTS", "PROGRAM", "SERVER", "MODULE_STARTER", "ROOT")


def forget() -> None:
    """Forget all systems and builds that were read."""
    for known in (system.load_systems, system._module, imported_by, build.build_for):
        known.cache_clear()


def use_root(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Read systems below a root until the patch is undone; then `forget` them."""
    for name in PLACES:
        place = root / getattr(system, name).relative_to(system.ROOT)
        monkeypatch.setattr(system, name, place)
    forget()
