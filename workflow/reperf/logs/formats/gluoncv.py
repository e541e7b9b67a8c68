"""gluon-cv's scripts of detection and action recognition: speeds, but no times.

    Epoch[034] Batch [0039]/[0056]\tSpeed: 110.684949 samples/sec\t accuracy=88.867188\t loss=0.371839\t lr=0.000100
    [Epoch 25][Batch 14599], Speed: 6.891 samples/sec, RPN_Conf=0.021,RPN_SmoothL1=0.023,..

The seconds that follow an epoch are those of its validation, too. Its classification prints MXNet's
own lines: see ngc_mxnet_resnet50.py.

Source: github.com/dmlc/gluon-cv, scripts/classification/imagenet/train_imagenet.py and its like;
logs in github.com/dmlc/web-data at 0818ee5, gluoncv/logs. No extractor was published.
"""

from reperf.logs.format import EPOCH, ITERATION, RATE, Format, line

FORMAT = Format(
    name="gluoncv",
    system="mxnet",
    marker=b" samples/sec",
    signs=(b"]/[", b"][Batch "),
    pattern=line(
        r"(?=Epoch\[\d{1,12}\] Batch \[\d{1,12}\]/|\[Epoch \d{1,12}\]\[Batch )"
        rf"\[?Epoch[\[ ]{EPOCH}\] ?\[?Batch \[?{ITERATION}\](?:/\[\d{{1,12}}\]|,)\s+"
        rf"Speed: {RATE} samples/sec"
    ),
    counts_from=0,
    unit="images/s",
)
