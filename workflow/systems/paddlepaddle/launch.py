"""Start Paddle's own launcher where there is no GPU: python -m paddlepaddle.launch ...

It takes an empty CUDA_VISIBLE_DEVICES for a list of one GPU, and finds none for a second rank.
"""

import os
import runpy

if __name__ == "__main__":
    if not os.environ.get("CUDA_VISIBLE_DEVICES"):
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    runpy.run_module("paddle.distributed.launch", run_name="__main__", alter_sys=True)
