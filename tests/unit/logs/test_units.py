"""What is counted: samples by batches, all else by the log's own counts at the window's ends."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.cli import main
from reperf.config import Suite
from reperf.measuring.suite_rows import measure_suite

from tests.helpers.step_logs import event, step_log
from tests.unit.logs.asking import check, encode, measure_one, measure_written
from tests.unit.logs.written import TIMED, written

MARK = ":::MLLOG "
A_STEP = [step * 2048 for step in range(1, 7)]
"""Tokens so far, where each of the six printed iterations adds as many."""


def counting(lines: list[str], **found: list) -> list[str]:
    """A step log whose printed iterations count more than samples: name -> a count for each."""
    rest = {name: iter(values) for name, values in found.items()}
    told = []
    for line in lines:
        if '"tracked_stats"' in line:
            said = json.loads(line.removeprefix(MARK))
            said["value"] |= {name: next(values) for name, values in rest.items()}
            line = MARK + json.dumps(said)  # noqa: PLW2901
        told.append(line)
    return told


GROWING = st.lists(st.integers(1, 10**9), min_size=6, max_size=6).map(
    lambda steps: [sum(steps[: n + 1]) for n in range(len(steps))]
)


@given(tokens=GROWING, rate=st.floats(0.1, 1e6))
def test_a_count_is_its_difference_between_the_windows_ends(tokens, rate):
    lines = counting(step_log(rate=rate), tokens=tokens)
    samples, counted = measure_one(lines), measure_one(lines, unit="tokens")
    check(counted, first=20, last=120, seconds=samples.seconds, unit="tokens/s")
    assert counted.samples == tokens[-1] - tokens[0]
    assert counted.throughput == counted.samples / counted.seconds
    # What else a log counts changes nothing of its samples.
    assert samples == measure_one(lines, unit="images")
    assert replace(samples, counted={"samples": 1600}) == measure_one(step_log(rate=rate))


NOT_COUNTED = "the log does not count tokens at the window's ends; it counts samples"
SHRINKING = "the log's count of tokens does not grow in the window"


@pytest.mark.parametrize(
    ("counted", "reason"),
    [
        ({}, NOT_COUNTED),
        ({"tokens": [1, 2, 3, 4, 5, None], "words": [1, 2, 3, 4, 5, 6]}, f"{NOT_COUNTED}, words"),
        *(({"tokens": [100, 200, 300, 400, 500, last]}, SHRINKING) for last in (0, 100, 99)),
    ],
)
def test_what_is_not_counted_or_does_not_grow_is_refused_by_name(counted, reason):
    refused = measure_one(counting(step_log(), **counted), unit="tokens")
    assert (refused.reason, refused.throughput, refused.unit) == (reason, None, "tokens/s")


@pytest.mark.parametrize("value", ["NaN", "1e400", '"100"', "true", "[]"])
def test_what_is_no_number_is_no_count(value):
    lines = counting(step_log(), tokens=[1, 2, 3, 4, 5, 777])
    odd = [line.replace('"tokens": 777', f'"tokens": {value}') for line in lines]
    check(measure_one(odd, unit="tokens"), "..does not count tokens")
    check(measure_one(odd))


SAY_TOKENS = """
build-nanogpt composer llm-c nanochat nanogpt nanotron ngc-pytorch-transformerxl olmo olmo-core
parameter-golf torchtitan
"""


@pytest.mark.parametrize("name", sorted({*TIMED} - {*SAY_TOKENS.split()}))
def test_no_format_of_others_is_taken_to_count_what_it_does_not(name):
    refused = measure_written(name, written(name), unit="tokens")
    check(refused, "..the log does not count tokens", throughput=None)


def test_the_published_method_counts_nothing_else():
    refused = measure_written(
        "oneflow-bert", written("oneflow-bert"), method="published", unit="tokens"
    )
    check(refused, "the published method does not count tokens")


def test_a_suite_asks_for_a_unit_of_its_workload_and_its_table_says_it(tmp_path):
    bert = [
        event("submission_benchmark", "bert-base") if "submission_b" in line else line
        for line in step_log()
        if '"parameters"' not in line
    ]
    folder = tmp_path / "logs" / "1n2g"
    folder.mkdir(parents=True)
    repeat = [line.replace("1012.6", "1012.7") for line in bert]  # inside the window
    (folder / "bert_b8_fp32_1.log").write_bytes(encode(counting(bert, tokens=A_STEP)))
    (folder / "bert_b8_fp32_2.log").write_bytes(encode(repeat))
    asked = {"name": "bert", "workload": "bert-base", "precision": "fp32"}
    asked["from"] = str(tmp_path / "logs")
    good, without = measure_suite(Suite.model_validate(asked | {"unit": "tokens"}), [])
    assert (good["reason"], good["samples"], good["unit"]) == ("", 5 * 2048, "tokens/s")
    assert good["throughput"] == good["samples"] / good["seconds"]
    assert (without["status"], without["unit"]) == ("refused", "tokens/s")
    usual, other = measure_suite(Suite.model_validate(asked), [])
    assert (usual["samples"], usual["unit"]) == (1600, "sentences/s")
    assert usual["throughput"] == other["throughput"]


def test_the_command_takes_a_unit(tmp_path, capsys):
    log = tmp_path / "bert.log"
    log.write_bytes(encode(counting(step_log(), tokens=A_STEP)))
    assert main(["measure", "--json", "--unit", "tokens", str(log)]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 5 * 2048


@pytest.mark.parametrize(
    ("name", "said"), [("torchtitan", []), ("mlperf-samples", [event("max_sequence_length", 8192)])]
)
def test_tokens_follow_from_packed_samples_whose_length_the_log_says(name, said):
    samples, tokens = (
        measure_written(name, said + written(name), unit=one) for one in (None, "tokens")
    )
    check(tokens, unit="tokens/s", throughput=samples.throughput * 8192)
    assert tokens.samples == samples.samples * 8192
