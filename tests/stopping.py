"""Work that is stopped on its way, as by a process that is killed."""


class Stopped(BaseException):
    """The work was stopped."""


class StopAfter:
    """A report that stops the work when it is told something for the last time.

    Attributes:
        told: the fractions done and the words.
    """

    def __init__(self, times):
        self.times, self.told = times, []

    def __call__(self, fraction, words):
        self.told.append((fraction, words))
        if len(self.told) == self.times:
            raise Stopped
