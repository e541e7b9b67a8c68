"""Serve parameters as the flags say; a system's `serve` starts this, once a server.

python -m trainers.launchers.roles --role=server ... workflow/trainers/serve.py --backend=...
"""

from trainers.contract.driver import serve

if __name__ == "__main__":
    serve()
