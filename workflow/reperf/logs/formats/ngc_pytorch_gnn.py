"""NVIDIA's PyTorch graph network of MLPerf v4.0: lines with time stamps, through DLLogger.

    DLL 2024-05-14 23:15:31.277961 - Iteration 5471 | train_acc : 0.7090 % | iteration_time : 110.17 ms | train_loss : 0.8262

Source: logs in github.com/mlcommons/training_results_v4.0, benchmark gnn. No extractor was published.
"""

from reperf.logs.format import Format, Prints

FORMAT = Format(
    name="ngc-pytorch-gnn",
    system="ngc-pytorch",
    marker=b" | iteration_time : ",
    pattern=r"DLL {DATE} - Iteration {ITERATION} \| train_acc : {NUMBER} % \| "
    r"iteration_time : {PACE_MS} ms \|",
    prints=Prints.BUSY_PACES,
)
