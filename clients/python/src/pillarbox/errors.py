"""The errors of this library, and which of them may pass."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime

import httpx


class PillarboxError(Exception):
    """Every error of this library. `code` is a stable word; the message says what was wrong and what would be right."""

    def __init__(
        self,
        message: str,
        code: str,
        *,
        type: str | None = None,
        param: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.type = type
        self.param = param
        """The parameter or field that was wrong: `metadata.colour`."""
        self.status = status
        self.request_id = request_id
        """Names the call in the log of the box."""
        self.retry_after = retry_after
        """Seconds after which the box wants to be asked again."""


class InvalidRequestError(PillarboxError):
    """400: a parameter is missing or invalid; `param` names it."""


class UnauthorizedError(PillarboxError):
    """401: no key, or one that is not valid."""


class ForbiddenError(PillarboxError):
    """403: the key lacks the scope, or a rule or limit does not allow the call."""


class NotFoundError(PillarboxError):
    """404: no such object."""


class ConflictError(PillarboxError):
    """409: the object exists already, or its state does not allow the call."""


class RateLimitedError(PillarboxError):
    """429: too many calls, also after all retries; `retry_after` says when to try again."""


class ServerError(PillarboxError):
    """5xx: an error of the box, or of a proxy before it."""


class ConnectionError(PillarboxError):
    """There was no answer: no connection, or it broke. `__cause__` says why."""


class TimeoutError(PillarboxError):
    """There was no answer, or no message, in time."""


_classes: dict[int, type[PillarboxError]] = {
    400: InvalidRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitedError,
}


def is_passing(error: PillarboxError) -> bool:
    """True for what another attempt may not meet."""
    status = error.status or 0
    return isinstance(error, (ConnectionError, TimeoutError)) or status == 429 or status >= 500


def error_from(response: httpx.Response) -> PillarboxError:
    """The error that a response states; one that is not of the box (a proxy's page, a redirect) has a code such as `http_502`."""
    status = response.status_code
    kind = ServerError if status >= 500 else _classes.get(status, PillarboxError)
    request_id = response.headers.get("X-Request-Id")
    retry_after = _seconds_of(response.headers.get("Retry-After"))
    try:
        told = json.loads(response.content)["error"]
        message, code = told["message"], told["code"]
        if isinstance(message, str) and isinstance(code, str):
            return kind(
                message,
                code,
                type=told.get("type"),
                param=told.get("param"),
                status=status,
                request_id=request_id or told.get("request_id"),
                retry_after=retry_after,
            )
    except (ValueError, KeyError, TypeError, AttributeError):
        # neither JSON nor an object of one
        pass
    message = f"Status {status}, not from a Pillarbox. Check base_url, and what is between."
    return kind(message, f"http_{status}", status=status, request_id=request_id, retry_after=retry_after)


def _seconds_of(text: str | None) -> float | None:
    """RFC 9110 10.2.3: seconds or a date."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
