"""What an environment or a container image holds, as one line of JSON, asked from inside.

python -m trainers.inside torch says its Python, packages and operating system, and how its
framework was built, also where that cannot be imported. Modules named after the framework are
imported, too, in the same process, because a framework takes seconds to import. With --listed
nothing is imported. It needs the standard library alone.
"""

import argparse
import json
import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

try:
    from importlib.metadata import distributions
except ImportError:  # Python 3.7
    distributions = None

from trainers.builds import FRAMEWORKS
from trainers.contract.build import Build, folder_of, said_by
from trainers.contract.compilers import COMPILERS, compiler_for


def inside(framework, modules):
    """What is here; `overlay` are the packages that a virtual environment adds, `import_trouble` is
    the last line of what an import of the framework said if it failed, `modules_trouble` that of
    the modules.
    """
    packages, overlay = _packages()
    return {
        "python": platform.python_version(),
        "compilers": {device: compiler_for(device) for device in COMPILERS},
        "executable": sys.executable,
        "system": _os_release().get("PRETTY_NAME"),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "packages": packages,
        "overlay": overlay,
        **_framework(framework, packages, modules),
    }


def listed(framework):
    """What is known without importing, `is_there` whether the framework is, and all variables."""
    return {
        "node": os.environ.get("SLURMD_NODENAME") or platform.node(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "packages": _packages()[0],
        "is_there": folder_of(framework) is not None,
        "variables": dict(os.environ),
    }


def _framework(name, packages, modules):
    # To import it takes seconds, and some builds are asked by an import of their own: both at once.
    with ThreadPoolExecutor(1) as pool:
        imported = pool.submit(_imported, name, modules)
        folder = folder_of(name)
        build = folder and FRAMEWORKS.get(name, lambda _: Build((name.replace("_", "-"),)))(folder)
    said = imported.result()
    if not build:
        return dict(said, framework=None)
    known = build._asdict()
    installed = (packages[one] for one in known.pop("distributions") if one in packages)
    known.update(said, framework=said["framework"] or next(installed, None))
    return known


def _imported(name, modules):
    importing = "import {0}; print({0}.__version__)".format(name)
    # The modules not from the work folder: a file there may have the name of one that they import.
    both = "import sys; del sys.path[0]; import {}; {}".format(", ".join(modules), importing)
    version, trouble = said_by(both if modules else importing)
    if not (modules and trouble):
        return {"framework": version, "import_trouble": trouble}
    version, of_framework = said_by(importing)
    return {"modules_trouble": trouble, "framework": version, "import_trouble": of_framework}


def _packages():
    """The packages that can be imported, and those that only a virtual environment has."""
    packages, overlay = {}, {}
    # reperf itself lies beside the trainers, where PYTHONPATH points, and is none of the build's.
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name, version, place in _installed():
        if os.path.realpath(place) == os.path.realpath(own):
            continue
        key = name.lower().replace("_", "-").replace(".", "-")
        if key not in packages:  # the first that is found is the one that is imported
            packages[key] = version
            if _adds_to_what_is_beneath() and _is_within(sys.prefix, place):
                overlay[key] = version
    return dict(_of_conda(), **packages), overlay


def _of_conda():
    """A conda environment's packages, name -> version and build, which says which BLAS it is."""
    prefix = sys.base_prefix if _adds_to_what_is_beneath() else sys.prefix
    try:
        files = os.listdir(os.path.join(prefix, "conda-meta"))
    except OSError:
        return {}
    # A record is called NAME-VERSION-BUILD.json, and only a name may have more hyphens.
    parts = [file[: -len(".json")].rsplit("-", 2) for file in files if file.endswith(".json")]
    return {part[0]: " ".join(part[1:]) for part in parts if len(part) == 3}


def _installed():
    """The name, the version and the place of each package, in the order of imports."""
    if distributions is None:
        working_set = import_module("pkg_resources").working_set
        return [(one.project_name, one.version, one.location) for one in working_set]
    found = [(one.metadata["Name"], one.version, one.locate_file("")) for one in distributions()]
    return [(name, version, str(place)) for name, version, place in found if name]


def _adds_to_what_is_beneath():
    """Whether this Python is of a virtual environment that sees the packages beneath it, too."""
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg")) as stream:
            lines = [line.replace(" ", "").strip().lower() for line in stream]
    except OSError:
        return False
    return "include-system-site-packages=true" in lines


def _is_within(folder, place):
    return os.path.realpath(place).startswith(os.path.realpath(folder) + os.sep)


def _os_release():
    try:
        with open("/etc/os-release") as stream:
            pairs = (line.rstrip().split("=", 1) for line in stream if "=" in line)
            return {key: value.strip("\"'") for key, value in pairs}
    except OSError:
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", help="the package that is imported")
    parser.add_argument("modules", nargs="*", help="modules that are imported before it")
    parser.add_argument("--listed", action="store_true", help="list packages, and import none")
    flags = parser.parse_args()
    here = listed(flags.framework) if flags.listed else inside(flags.framework, flags.modules)
    print(json.dumps(here, sort_keys=True))


if __name__ == "__main__":
    main()
