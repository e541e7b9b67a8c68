"""Run a module as `python -m` does, but see no module in the working folder, such as a timeit.py.

-P and PYTHONSAFEPATH came with Python 3.11. Used as module.py torch.distributed.run ...
"""

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # this file's folder, before anything there is taken for another module
    del sys.argv[0]
    import runpy

    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
