"""The four kinds of failure. The class of an error says who must act."""


class AfterwatchError(Exception):
    """Root of our errors. `remedy` is the next step, shown under the message.

    `code` is a stable machine-readable word; it never holds user text.
    """

    code = "error"

    def __init__(self, message: str, *, remedy: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy
        if code is not None:
            self.code = code


class UserError(AfterwatchError):
    """The input is wrong: whoever typed it must change it."""

    code = "user_error"


class ToolRefused(AfterwatchError):
    """A tool call was refused: the model may try another form."""

    code = "refused"


class Unavailable(AfterwatchError):
    """Something is missing or busy now: retry later, or repair it."""

    code = "unavailable"


class Defect(AfterwatchError):
    """An invariant of ours is broken: a bug report is due."""

    code = "defect"
