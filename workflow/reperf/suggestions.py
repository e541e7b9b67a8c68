"""Suggestions for words that are not allowed: what the writer probably meant."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 100  # characters of a word that is compared; no key or name has more

CLOSE = 0.7
"""How alike two words must be, of 1: `gpu` is not meant for `cpu`, nor `docker` for `lock`."""
_SHORTEST = 3  # characters with which a word must begin as another does
_ALSO_CALLED = {
    **dict.fromkeys(("constraint", "gres", "qos", "reservation"), "options"),
    **dict.fromkeys(("env", "environment"), "variables"),
    **dict.fromkeys(("epochs", "steps"), "iterations"),
    **dict.fromkeys(("framework", "frameworks"), "systems"),
    **dict.fromkeys(("float16", "half"), "fp16"),
    **dict.fromkeys(("mem", "memory"), "memory_mb"),
    **{"batch": "batch_size", "bfloat16": "bf16", "dtype": "precision", "float32": "fp32"},
    **{"gpu": "cuda", "gpus_per_node": "devices_per_node", "image_size": "shape"},
    **{"max": "largest", "mixed": "amp", "model": "workload", "name": "system"},
    **{"queue": "partition", "real": "records", "runs": "repeats", "singularity": "apptainer"},
    "timeout": "time_limit",
}  # words of other programs, and reperf's for the same


def nearest(word: object, known: Iterable[str], *, close: float = CLOSE) -> str | None:
    """The known word that is most like another word; None if no word is close enough."""
    if not isinstance(word, str) or len(word) > LONGEST:
        return None
    plain = _plain(word)
    of_plain = {_plain(candidate): candidate for candidate in known}
    if exact := of_plain.get(plain) or of_plain.get(_ALSO_CALLED.get(plain, "")):
        return exact
    like = get_close_matches(plain, of_plain, n=1, cutoff=close)
    if len(plain) >= _SHORTEST and not like:
        begins = (name for name in of_plain if name.startswith(plain) or plain.startswith(name))
        like = sorted(begins, key=len)[:1]
    return of_plain[like[0]] if like else None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a refusal: "; did you mean pytorch?", or nothing if no known word is like it."""
    candidate = nearest(word, known)
    return f"; did you mean {candidate}?" if candidate else ""


def allowed(word: object, known: Iterable[str]) -> str:
    """The known words, as refusals list them, and which of them was probably meant."""
    known = list(known)
    return f"allowed: {', '.join(known) or 'none'}{did_you_mean(word, known)}"


def of_topology(word: str) -> str:
    """The same for a topology, such as 2x8 for 2n8g."""
    numbers = re.findall(r"[1-9]\d*", word)
    return f"; did you mean {numbers[0]}n{numbers[1]}g?" if len(numbers) == 2 else ""


def _plain(word: str) -> str:
    return word.strip().lower().replace("-", "_")
