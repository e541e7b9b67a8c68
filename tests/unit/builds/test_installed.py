"""What is installed, beside its lock and beside what was there when an environment was built."""

import re
from pathlib import Path

import pytest
from reperf.builds.installed import check_locked, why_not_as_built
from reperf.errors import ReperfError

LOCK = """\
# Made with uv from torch==1.0.
torch==2.13.0
    # via a package
Jinja2[i18n]==3.1.6 ; python_version >= "3.9" \\
    --hash=sha256:00
numpy==1.26.4; python_version < "3.12"
numpy==2.4.6; python_version >= "3.12"
triton==3.7.1+git1
setuptools
"""


@pytest.mark.parametrize(
    ("packages", "differ"),
    [
        ({"torch": "2.13.0+cpu", "jinja2": "3.1.6", "setuptools": "84.2.1"}, None),
        ({"numpy": "1.26.4", "torch": "2.13"}, None),
        ({"numpy": "2.4.6", "triton": "3.7.1+git1"}, None),
        ({"numpy": "2.0.0"}, "numpy 2.0.0 for 1.26.4 or 2.4.6"),
        ({"torch": "2.11.0+cpu", "jinja2": "3.1.6"}, "torch 2.11.0+cpu for 2.13.0"),
        ({"torch": "2.13.0.post1"}, "torch 2.13.0.post1 for 2.13.0"),
        ({"triton": "3.7.1"}, "triton 3.7.1 for 3.7.1+git1"),
        ({"pip": "25.0"}, "pip 25.0 for none"),
        (dict.fromkeys("abcde", "1"), "a 1 for none, b 1 for none, c 1 for none and 2 more"),
    ],
)
def test_a_lock_allows_its_versions_and_builds_of_them_alone(tmp_path, packages, differ):
    lock = tmp_path / "mine.txt"
    lock.write_text(LOCK)
    if differ is None:
        check_locked(packages, lock, "envs/mine.txt")
        return
    with pytest.raises(ReperfError, match=f"^envs/mine.txt: .*: {re.escape(differ)}; "):
        check_locked(packages, lock, "envs/mine.txt")


def install(environment: Path, folder: str, metadata: str) -> None:
    place = environment / "lib/python3.11/site-packages" / folder
    place.mkdir(parents=True)
    (place / "METADATA").write_text(metadata)


def test_only_names_and_versions_count_however_they_are_spelt(tmp_path):
    install(tmp_path, "ruamel.yaml-0.18.0.dist-info", "Name: ruamel.yaml\nVersion: 0.18.0\n")
    install(tmp_path, "torch-2.13.0+cpu.dist-info", "Name: torch\nVersion: 2.13.0+cpu\n")
    install(tmp_path, "~umpy-2.4.6.dist-info", "")  # what an upgrade that broke off leaves
    assert why_not_as_built(tmp_path, {"ruamel-yaml": "0.18", "torch": "2.13.0+cpu"}) == ""
    why = why_not_as_built(tmp_path, {"torch": "2.13.0+cu130", "numpy": "2.4.6"})
    assert why.endswith(
        ": numpy none for 2.4.6, ruamel-yaml 0.18.0 for none, torch 2.13.0+cpu for 2.13.0+cu130"
    )
