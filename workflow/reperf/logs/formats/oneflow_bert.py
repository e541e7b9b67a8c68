"""OneFlow-Benchmark's BERT pretraining, with or without the time stamp. Steps count from 0.

    step: 19, total_loss: 9.725, mlm_loss: 8.960, nsp_loss: 0.766, throughput: 54.982 1598056519.8844702

Source: github.com/Oneflow-Inc/OneFlow-Benchmark, LanguageModeling/BERT/util.py; DLPerf
OneFlow/LanguageModeling/BERT/extract_bert_result.py.
"""

from reperf.logs import estimators
from reperf.logs.clock import UNIX
from reperf.logs.format import Format
from reperf.logs.formats.oneflow_resnet50 import ARGUMENTS

FORMAT = Format(
    name="oneflow-bert",
    system="oneflow",
    marker=b", total_loss: ",
    pattern=r"step: {ITERATION}, total_loss: {NUMBER}, mlm_loss: {NUMBER}, nsp_loss: {NUMBER}, "
    r"throughput: {RATE}(?: {UNIX})?{END}",
    facts=ARGUMENTS,
    counts_from=0,
    unit="sentences/s",
    published=estimators.between_iterations(19, 119, UNIX),
    notes={"extractor": "19 to 119, by time stamps"},
)
