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


@pytest.mark.parametrize("version", [HERE, *OTHERS])
def test_an_installed_wheel_measures_verifies_and_rebuilds(version, wheel, real_finished, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    # Its environment has nothing of this clone: neither its packages nor its folder.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean |= {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    clean |= {"UV_COMPILE_BYTECODE": "0"}  # five commands import little of what is installed

    def call(*command: object) -> str:
        answer = subprocess.run(
            [str(part) for part in command],
            check=False,
            cwd=folder,
            env=clean,
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    pins = ROOT / "requirements.txt"  # figures are drawn to the byte by the versions that it names
    call(
        find_uv_bin(),
        "tool",
        "install",
        "--python",
        interpreter(version),
        "--constraints",
        pins,
        f"{wheel}[report]",
    )
    reperf = tmp_path / "bin" / "reperf"
    assert call(tmp_path / "tools/reperf/bin/python", "--version").startswith(f"Python {version}.")
    assert call(reperf, "--version") == f"reperf {__version__}\n"
    for method in ("window", "published"):
        assert "1 measured, 0 refused" in call(reperf, "measure", "--method", method, LOG)
    archive = real_finished / "archive/small.zip"
    assert "all as they were archived" in call(reperf, "archive", "verify", archive)
    remade = call(reperf, "archive", "rebuild", archive, "--to", "new")
    assert remade == f"new: 17 files made again, all with the same bytes as in {archive}\n"


def test_the_wheel_alone_measures_and_verifies_and_says_what_needs_more(wheel, tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    uv, folder = find_uv_bin(), tmp_path / "environment"
    install = [uv, "pip", "install", "--quiet", "--constraints", ROOT / "requirements.txt", wheel]
    for command in ([uv, "venv", "--quiet", "--python", interpreter(HERE), folder], install):
        there = {"VIRTUAL_ENV": str(folder), "UV_COMPILE_BYTECODE": "0"}
        subprocess.run(command, check=True, env=clean | there)
    program = f"import reperf; print(*reperf.measure({str(LOG)!r})['unit'])"
    answer = subprocess.check_output([folder / "bin/python", "-c", program], env=clean, text=True)
    assert answer == "images/s\n"
    archive = str(tmp_path / "x.zip")
    Path(archive).touch()
    for arguments, said in (
        (["verify", archive], "x.zip: is no whole archive"),
        (["rebuild", archive, "--to", archive], "not installed; install reperf[report]"),
    ):
        answer = subprocess.run(
            [folder / "bin/reperf", "archive", *arguments],
            check=False,
            env=clean,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert (answer.returncode, said in answer.stderr) == (1, True), answer.stderr
