"""`reperf archive`: check and sign archives, or make the tables, figures and page of one again."""

import argparse
import sys
from pathlib import Path

from reperf.archive.container import verified
from reperf.archive.rebuild import rebuild, verify
from reperf.archive.signature import sign, signature_of, signer_of
from reperf.errors import ReperfError
from reperf.text import count, printable


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    archive = "such as archive/resnet50-fp32.zip"

    purpose = "find any changed, missing or added byte, and measure the logs again"
    verify = actions.add_parser("verify", help=purpose, description=f"{purpose.capitalize()}.")
    verify.add_argument("files", type=Path, nargs="+", metavar="FILE", help=archive)
    verify.add_argument(
        "--signers",
        type=Path,
        metavar="FILE",
        help="name who signed each archive, by this list of names and public keys: see ALLOWED "
        "SIGNERS in ssh-keygen(1)",
    )
    verify.set_defaults(run=run_verify)

    purpose = "write the signature of each archive beside it, by an SSH key"
    sign = actions.add_parser("sign", help=purpose, description=f"{purpose.capitalize()}.")
    sign.add_argument("files", type=Path, nargs="+", metavar="FILE", help=archive)
    sign.add_argument(
        "--key", type=Path, required=True, metavar="FILE", help="such as ~/.ssh/id_ed25519"
    )
    sign.set_defaults(run=run_sign)

    purpose = "make tables, figures and page again from the logs, and compare the bytes"
    rebuild = actions.add_parser("rebuild", help=purpose, description=f"{purpose.capitalize()}.")
    rebuild.add_argument("file", type=Path, metavar="FILE", help=archive)
    rebuild.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="where to; new or empty"
    )
    rebuild.set_defaults(run=run_rebuild)


def run_verify(options: argparse.Namespace) -> int:
    """Say of each archive how many files were found unchanged, or what is wrong with it."""
    status = 0
    for file in options.files:
        try:
            by = f"; signed by {signer_of(file, options.signers)}" if options.signers else ""
            files = verify(file)
        except ReperfError as fault:
            print(f"reperf: {fault}", file=sys.stderr)
            status = 1
        else:
            line = f"{file}: {files} files, all as they were archived; its logs give its tables{by}"
            print(printable(line))
    return status


def run_sign(options: argparse.Namespace) -> int:
    """Name the signatures."""
    for file in options.files:
        with verified(file):
            sign(file, options.key)
        print(printable(f"{signature_of(file)}: signs {file}"))
    return 0


def run_rebuild(options: argparse.Namespace) -> int:
    """Count what came out the same, and name what another version made otherwise."""
    result = rebuild(options.file, options.to)
    same, every = len(result.same), len(result.same) + len(result.differ)
    all_same = "all" if same == every else str(same)
    line = f"{count(every, 'file')} made again, {all_same} with the same bytes as in {options.file}"
    print(printable(f"{options.to}: {line}"))
    for name in result.differ:
        makers = ", ".join(result.made_with)
        print(printable(f"{options.to / name}: not as in {options.file}, which {makers} made"))
    return 0
