"""fairseq's Transformer of 2018, in MLPerf until v1.0 and NVIDIA's examples: no count of sentences.

    | epoch 001:   1000 / 2184 loss=81194.557, nll_loss=0.000, ppl=1.00, wps=176776, ups=3.1, wpb=56091, bsz=485, num_updates=997, lr=0.000985036, .. wall=323
    | epoch 001 | loss 65192.095 | nll_loss 0.000 | ppl 1.00 | wps 176942 | ups 3.1 | wpb 56060 | bsz 487 | num_updates 2178 | lr 0.00189353 | .. | wall 696
    Transformer | epoch 0 | step 510 |avg loss 9.348 |avg tokens 141550.400 |tokens/s 381113.020 |walltime 202.526 |

A batch holds as many sentences as fit into a number of words. How many those were, only averages
since the epoch began tell, and the wall clock does not stop for a validation. The last line is
that of NVIDIA's DeepLearningExamples, whose means are those since the line before.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/transformer/implementations/pytorch/train.py; logs in github.com/PaddlePaddle/Perf at
e7a07c4, Transformer/OtherReports/PyTorch/logs. No extractor was published.
"""

from reperf.logs.format import Format

FORMAT = Format(
    name="ngc-pytorch-transformer",
    system="ngc-pytorch",
    marker=b"| epoch ",
    signs=(b"num_updates", b" |walltime "),
    pattern=r"\| epoch {EPOCH}(?:(?:: +\d{1,12} / \d{1,12}| \|) loss[= ]{NUMBER}[^\r\n]{0,200}? "
    r"num_updates[= ]|(?= \| step \d[^\r\n]{0,200} \|walltime ) \| step ){ITERATION}\b",
    untimed="its batches hold as many sentences as fit, and no line says how many were trained on",
    unit="sentences/s",
)
