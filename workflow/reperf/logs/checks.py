"""All checks of a log, in one list: what each is about, and whether it refuses the number or warns."""

from typing import NamedTuple


class Check(NamedTuple):
    """What a log is checked for."""

    code: str  # by which `reperf measure` groups refusals, and docs/refusals.md lists them
    sentence: str  # what is wrong with a log that fails the check
    refuses: bool = True  # whether such a log gives no number; else it gives one, with a warning


CHECKS = (
    # Is it a log, and can it be read?
    Check("no-log", "The folder or archive holds no log."),
    Check("unreadable", "The file cannot be read, or its archive is refused."),
    Check("no-text", "The file is empty, compressed, or in another encoding than UTF-8."),
    Check("unknown-format", "No line is one that a known format prints for an iteration."),
    Check("several-formats", "The log fits several formats."),
    Check("no-lines", "No line is one of the format or pattern that was asked for."),
    Check("no-run", "The log does not hold the run that was asked for."),
    Check("too-many-lines", "There are more lines up to the window's end than are kept."),
    Check("method", "The log does not hold what the published method or the unit needs."),
    # Whose log is it?
    Check("record", "The run record beside the log is not one, has changed, or is another run's."),
    Check("run-failed", "The run ended badly, by its record."),
    Check("no-training", "The run trains nothing: it only loads batches, or runs forward."),
    Check("unknown", "No source gives a number that the rule needs."),
    Check("contradiction", "Two sources disagree about the run."),
    Check("plan", "The log does not print what its run's plan says."),
    # Does it hold the window?
    Check("too-short", "The log ends before the window does."),
    Check("hole", "The time of some iterations in the window is not in the log."),
    Check("end", "The log does not show that the run ended well, after the window."),
    Check("no-times", "The log prints neither time stamps nor durations."),
    Check("mixed-ranks", "Lines of several ranks, or of a resumed run, are mixed without labels."),
    Check("repeated", "An iteration in the window is printed again."),
    Check("restart", "The program was started anew in the window."),
    Check("evaluations", "Evaluations in the window cannot be left out of its time."),
    # Can its times and its counts be believed?
    Check(
        "clock", "The clock steps back, stands still, or is too coarse, or lines were held back."
    ),
    Check("two-clocks", "The log's two clocks disagree."),
    Check("outside-run", "The window does not lie within its run's start and end."),
    Check("pace", "The window's time is not what its lines print an iteration to take."),
    Check("ahead", "Lines are printed before their work is done."),
    Check("speed", "The printed speeds do not fit the batch and the times."),
    Check("open-size", "Nothing says how many samples a step has."),
    Check("counts", "What the log counts does not fit its batches."),
    Check("skipped", "Loss scaling skipped steps in the window."),
    Check("impossible", "No training has such a speed or such a number."),
    Check("trainers", "The trainers of the run cannot be measured together."),
    # What is said beside a number.
    Check(
        "clock-set", "The wall clock was set; the clock that cannot jump is taken.", refuses=False
    ),
    Check(
        "gap",
        "One interval of the window is far longer than the others: a clock was set, or it paused.",
        refuses=False,
    ),
    Check("not-finite", "The loss is not a finite number at the window's end.", refuses=False),
    Check(
        "implied-length",
        "No line says how many tokens a sample has: it follows from the batch that was given.",
        refuses=False,
    ),
    Check("given-batch", "Nothing in the log could contradict your batch.", refuses=False),
    Check("widest", "The window was chosen: the usual one is refused.", refuses=False),
)

SENTENCES = {check.code: check.sentence for check in CHECKS}


class Refused(Exception):
    """A log gives no number: the code of the check that it fails, and a message that says why."""

    def __init__(self, code: str, message: str) -> None:
        assert code in SENTENCES, code
        super().__init__(message)
        self.code = code
