"""What the rules call.

python -m reperf.steps measure resnet50-fp32 --log logs/measure/resnet50-fp32.log
"""

import argparse
from importlib import import_module
from pathlib import Path

from reperf.building.script import script


def main() -> None:
    """Do one step."""
    parser = argparse.ArgumentParser(prog="python -m reperf.steps")
    parser.add_argument("step", help="a module of reperf.steps")
    parser.add_argument(
        "what", nargs="*", help="the suite, the build, or the data set and its format"
    )
    parser.add_argument("--log", type=Path, help="for messages; left out: standard error")
    options = parser.parse_args()
    with script(options.log):
        import_module(f"reperf.steps.{options.step}").run(*options.what)


if __name__ == "__main__":
    main()
