"""Further tries where another one may mend what failed, and endpoints quoted without their keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from hyce.errors import EndpointError
from hyce.privacy import neutral, redact

LONGEST_WAIT = 60.0
"""Seconds: an endpoint that asks for a longer pause by Retry-After is given up at once."""

T = TypeVar("T")


class PassingError(Exception):
    """A failure that another try may mend. `wait`: seconds that the endpoint asked for."""

    def __init__(self, reason: str, remedy: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.remedy, self.wait = reason, remedy, wait


def repeated(
    send: Callable[[], T],
    retries: int,
    error: Callable[[str, str], EndpointError],
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """What `send` returns, tried again after each PassingError, with back-off or the pause asked for.

    error: makes the error to raise, of a reason and a remedy, when no further try is left.
    """
    for attempt in range(retries + 1):
        try:
            return send()
        except PassingError as failure:
            wait = failure.wait if failure.wait is not None else min(0.5 * 2**attempt, 8.0)
            if attempt == retries or wait > LONGEST_WAIT:
                asked = f" and asks to wait {wait:.0f} s" if wait > LONGEST_WAIT else ""
                raise error(failure.reason + asked, failure.remedy) from failure
        sleep(wait)
    raise AssertionError("unreachable")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait: a number or a date."""
    import email.utils  # late: seldom needed

    text = headers.get("retry-after", "").strip()
    if text.replace(".", "", 1).isdecimal() and text.isascii():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def broken_connection(error: BaseException) -> str:
    """What went wrong with a connection, from the innermost cause."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 8:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    text = " ".join(str(causes[-1]).split())[:120] or type(causes[-1]).__name__
    return f"the connection failed ({neutral(text)})"


def quoted(text: str, key: str) -> str:
    """What an endpoint said, in one line, without keys. key: "none" where there is none."""
    line = " ".join(neutral(text.replace(key, "***") if key != "none" else text).split())
    line = redact(line)
    return line if len(line) <= 200 else line[:199] + "\N{HORIZONTAL ELLIPSIS}"
