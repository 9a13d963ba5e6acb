"""Interruption of a job by its progress report, as by a killed process."""


class Stopped(BaseException):
    """The work was stopped."""


class StopAfter:
    """A progress report that stops the work at its call number ``times``.

    Attributes:
        calls: fraction done and words of each call.
    """

    def __init__(self, times):
        self.times, self.calls = times, []

    def __call__(self, fraction, words):
        self.calls.append((fraction, words))
        if len(self.calls) == self.times:
            raise Stopped
