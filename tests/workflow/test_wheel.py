"""A wheel alone: installed outside any clone, it measures, verifies and rebuilds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from reperf import __version__
from reperf.layout import ROOT
from uv import find_uv_bin

from tests.helpers.pythons import interpreter, promised

LOG = ROOT / "tests/data/logs/oneflow_resnet50_2n8g_b128_fp32.log"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = [find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)]
    subprocess.run(built, check=True)
    (file,) = folder.glob("*.whl")
    return file


HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
OTHERS = [pytest.param(one, marks=pytest.mark.weekly) for one in promised() if one != HERE]


@pytest.mark.timeout(300)  # two environments are installed, on however busy a machine
@pytest.mark.parametrize("version", [HERE, *OTHERS])
def test_an_installed_wheel_measures_and_verifies_and_with_its_extra_rebuilds(
    version, wheel, real_finished, tmp_path
):
    # Its environment has nothing of this clone: neither its packages nor its folder.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean |= {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}

    def call(*command: object, fails: bool = False) -> str:
        words = [str(part) for part in command]
        answer = subprocess.run(
            words, check=False, cwd=tmp_path, env=clean, capture_output=True, text=True
        )
        assert bool(answer.returncode) == fails, answer.stdout + answer.stderr
        return answer.stderr if fails else answer.stdout

    def install(extra: str) -> None:
        tool = (find_uv_bin(), "tool", "install", "--python", interpreter(version))
        # Figures are drawn to the byte by the versions that it names.
        call(*tool, "--constraints", ROOT / "requirements.txt", f"{wheel}{extra}")

    install("")
    reperf, python = tmp_path / "bin/reperf", tmp_path / "tools/reperf/bin/python"
    assert call(python, "--version").startswith(f"Python {version}.")
    assert call(reperf, "--version") == f"reperf {__version__}\n"
    assert "1 measured, 0 refused" in call(reperf, "measure", LOG)
    program = f"import reperf; print(*reperf.measure({str(LOG)!r})['unit'])"
    assert call(python, "-c", program) == "images/s\n"
    archive = real_finished / "archive/small.zip"
    assert "all as they were archived" in call(reperf, "archive", "verify", archive)
    rebuild = (reperf, "archive", "rebuild", archive, "--to", "new")
    assert "not installed; install reperf[report]" in call(*rebuild, fails=True)
    install("[report]")
    remade = f"new: 13 files made again, all with the same bytes as in {archive}\n"
    assert call(*rebuild) == remade
