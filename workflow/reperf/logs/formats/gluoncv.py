"""gluon-cv's scripts of detection and action recognition: speeds, but no times.

    Epoch[034] Batch [0039]/[0056]\tSpeed: 110.684949 samples/sec\t accuracy=88.867188\t loss=0.371839\t lr=0.000100
    [Epoch 25][Batch 14599], Speed: 6.891 samples/sec, RPN_Conf=0.021,RPN_SmoothL1=0.023,..
    [Epoch 0][Batch 99], LR: 9.59E-05, Speed: 148.642 samples/sec, ObjLoss=429.711,..

The last is YOLO's. The seconds that follow an epoch are those of its validation, too. gluon-cv's
classification prints MXNet's own lines: see ngc_mxnet_resnet50.py.

Source: github.com/dmlc/gluon-cv, scripts/classification/imagenet/train_imagenet.py and its like;
logs in github.com/dmlc/web-data at 0818ee5, gluoncv/logs. No extractor was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="gluoncv",
    system="mxnet",
    marker=b" samples/sec",
    signs=(b"]/[", b"][Batch "),
    pattern=r"(?=Epoch\[\d{1,12}\] Batch \[\d{1,12}\]/|\[Epoch \d{1,12}\]\[Batch )"
    r"\[?Epoch[\[ ]{EPOCH}\] ?\[?Batch \[?{ITERATION}\](?:/\[\d{1,12}\]|,)\s+"
    r"(?:LR: {NUMBER}, )?Speed: {RATE} samples/sec",
    facts=facts_by(
        global_batch=r"\bTotal batch size is set to (\d{1,9}) on \d{1,9} GPUs",
        world_size=r"\bTotal batch size is set to \d{1,9} on (\d{1,9}) GPUs",
    ),
    counts_from=0,
    unit="images/s",
)
