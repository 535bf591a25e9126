"""Every error a caller can meet: a stable dotted code, and a sentence with what, why, what next.

Raised by domain and usecases; `core.http` turns the code's family into a status, and each API wraps
the sentence in its own body. The docstring of a class is its default text.
"""


class SideriteError(Exception):
    """Something went wrong inside Siderite; the log has the details under this request's id."""

    code = "internal"
    status = 500
    retry_after_s: int | None = None

    def __init__(self, sentence: str | None = None, *, retry_after_s: int | None = None) -> None:
        self.sentence = sentence or " ".join((self.__doc__ or "").split())
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s
        super().__init__(self.sentence)


class Invalid(SideriteError):
    """The request cannot be understood; see the API reference for its form."""

    code = "request.invalid"
    status = 400


class IllegalVerb(Invalid):
    """That cannot be asked of the machine in its present state."""

    code = "machine.illegal_verb"


class Unsupported(Invalid):
    """The driver of this machine cannot do that."""

    code = "driver.unsupported"


class Unauthorized(SideriteError):
    """Authentication is required: get a token at /identity/v3/auth/tokens."""

    code = "auth.required"
    status = 401


class Forbidden(SideriteError):
    """Your roles do not allow this; ask an administrator for a role that does."""

    code = "auth.forbidden"
    status = 403


class NotFound(SideriteError):
    """There is nothing here; check the address and the name."""

    code = "resource.not_found"
    status = 404


class MethodNotAllowed(SideriteError):
    """This address does not take that method."""

    code = "request.method"
    status = 405


class NotAcceptable(SideriteError):
    """This needs a newer API version; ask for one with the version header."""

    code = "version.not_acceptable"
    status = 406


class Conflict(SideriteError):
    """That clashes with what is there; look at the resource and try again."""

    code = "resource.conflict"
    status = 409


class Busy(Conflict):
    """The machine is busy with something else; try again in a moment."""

    code = "machine.busy"
    retry_after_s = 2


class Gone(SideriteError):
    """That was here once and is not kept any more."""

    code = "resource.gone"
    status = 410


class TooLarge(SideriteError):
    """The body is larger than this address takes."""

    code = "request.too_large"
    status = 413


class UnsupportedMedia(SideriteError):
    """The body's Content-Type is not one that this address takes."""

    code = "request.media_type"
    status = 415


class RangeNotSatisfiable(SideriteError):
    """There are no such bytes."""

    code = "request.range"
    status = 416

    def __init__(self, sentence: str | None = None, *, size: int | None = None) -> None:
        super().__init__(sentence)
        self.size = size
        """How many there are, if that is known."""


class Unreadable(SideriteError):
    """A record in the database cannot be read; mend it there, or restore a backup."""

    code = "record.unreadable"


class Unavailable(SideriteError):
    """The service cannot answer just now; try again in a moment."""

    code = "service.unavailable"
    status = 503
    retry_after_s = 2
