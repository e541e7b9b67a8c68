"""Systems, trainers and locks of another folder than reperf's own."""

from pathlib import Path

import pytest
from reperf import builds, systems
from reperf.building.code import imported_by

PLACES = ("SYSTEMS", "TRAINERS", "ENVIRONMENTS", "PROGRAM", "SERVER", "MODULE_STARTER", "ROOT")


def forget() -> None:
    """Forget all systems and builds that were read."""
    for known in (systems.load_systems, systems._module, imported_by, builds.build_for):
        known.cache_clear()


def use_root(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Read systems below a root until the patch is undone; then `forget` them."""
    for name in PLACES:
        place = root / getattr(systems, name).relative_to(systems.ROOT)
        monkeypatch.setattr(systems, name, place)
    forget()
