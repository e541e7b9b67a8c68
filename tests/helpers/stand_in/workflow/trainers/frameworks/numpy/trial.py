"""What the doctor asks of numpy."""

from trainers.contract import trial


class Trial(trial.Trial):
    def convolve(self, images, filters):
        return trial.convolved(images, filters)
