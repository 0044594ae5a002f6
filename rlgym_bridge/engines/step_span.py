"""Keep count of the ticks of one step of a live match, and of the rows that answer them."""


class StepSpan:
    """The ticks of one step, each with the row that answers its packet.

    Args:
        first: Frame that row 0 is meant to answer.
        ticks: Rows of the step.

    Attributes:
        first: As given, moved on by pauses.
        ticks: As given.
        sent: Packets that were answered with a row.
        is_over: Whether the last row has been sent.
    """

    def __init__(self, first: int, ticks: int) -> None:
        self.first, self.ticks = first, ticks
        self.sent = 0
        self.is_over = False
        self._begin = first

    def pause(self, ticks: int) -> None:
        """Leave out ticks in which the game was not in play."""
        self.first += ticks
        self._begin += ticks

    def begins_late(self, frame: int) -> bool:
        """Tell whether all rows would come too late for a frame; the step then begins with it."""
        late = not self.sent and frame - self.first >= self.ticks
        if late:
            self._begin = frame
        return late

    def row(self, frame: int) -> int:
        """Return the index of the row that answers a frame."""
        self.sent += 1
        tick = frame - self._begin
        self.is_over = tick >= self.ticks - 1
        return min(tick, self.ticks - 1)
