"""What the report says of what `reperf doctor` found."""

from reperf.doctor.diagnosis import Diagnosis
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from written_probes import diagnosis, with_part

HOSTILE = "<script>alert('x')</script> | **bold**"


def rendered(benchmark, made) -> tuple[str, str]:
    context = gather(
        benchmark.report, benchmark.records, benchmark.measurements, benchmark.summary, made
    )
    return render_html(context, benchmark.figures), render_markdown(context, "figures")


def diagnosis_of_an_ill_node() -> Diagnosis:
    return diagnosis(with_part("host", cpu=HOSTILE))


def test_the_environment_part_shows_every_finding(big_benchmark):
    made = diagnosis_of_an_ill_node()
    for text in rendered(big_benchmark, made):
        assert "2026-11-21 08:15:02 UTC, profile slurm" in text
        assert "0 errors, 1 warning" in text
        assert "all 4 nodes" in text
        assert text.count("all-reduce of pytorch.cuda") == 2  # in a node, and over nodes
        assert "<script>alert" not in text
    html, markdown = rendered(big_benchmark, made)
    assert html.count('<th scope="row">GPU clocks</th>') == 1
    assert "| GPU clocks | ok | all 4 nodes | up to 1410 MHz |" in markdown
    assert html.count('<th scope="row">pytorch.cuda</th>') == 1
    assert "| pytorch.cuda | yes | 8 x NVIDIA A100-SXM4-80GB | 4e-07 | 74.7 GB/s |" in markdown


def test_equal_diagnoses_give_equal_reports(big_benchmark):
    made = diagnosis_of_an_ill_node()
    again = Diagnosis.model_validate_json(made.model_dump_json())
    assert rendered(big_benchmark, made) == rendered(big_benchmark, again)


def test_a_report_without_a_diagnosis_does_not_speak_of_one(big_benchmark):
    for text in rendered(big_benchmark, None):
        assert "reperf doctor" not in text


def test_the_frameworks_have_their_heading_whether_the_doctor_was_asked_or_not(big_benchmark):
    for made in (None, diagnosis_of_an_ill_node()):
        html, markdown = rendered(big_benchmark, made)
        assert "\n### Frameworks\n\n| system |" in markdown
        assert html.count("<h3>Frameworks</h3>") == 1
