"""How a call is made, repeated and answered.

What a call does is written once, as a generator of steps that it wants taken: a request to send, seconds to pause, rows to hand out. `Caller`
takes them and waits, `AsyncCaller` takes them in asyncio.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, TypedDict, Union
from urllib.parse import quote

import httpx

from .cards import sealed_card
from .errors import ConnectionError, InvalidRequestError, PillarboxError, TimeoutError, error_from

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

__all__ = ["AsyncCaller", "Caller", "Options", "Unpack"]


class Options(TypedDict, total=False):
    """Options of every call."""

    timeout: float
    """Seconds that one attempt may take; 60 by default."""
    retries: int
    """Attempts after the first; 3 by default."""
    idempotency_key: str
    """Of calls that create or send: the same key with the same call has one effect. Made up for each call when it is left out."""


@dataclass
class Pause:
    seconds: float


@dataclass
class Rows:
    rows: list[Any]


Step = Union[httpx.Request, Pause, Rows]
Steps = Generator[Step, Any, Any]

longest_pause = 60
"""A `Retry-After` above this is left to the caller, in seconds."""


class Calls:
    """The steps of calls, for either caller."""

    def __init__(self, base_url: str, api_key: str | None, timeout: float, retries: int, card_key: bytes | str | None = None) -> None:
        if not isinstance(base_url, str) or not re.fullmatch(r"https?://[^/?#]+(/[^?#]*)?", base_url):
            raise PillarboxError("base_url must be the URL of a box, such as https://box.example.com", "bad_base_url")
        self._url = re.sub(r"/v1$", "", base_url.rstrip("/")) + "/v1"
        self._key = api_key
        self._timeout = timeout
        self._retries = retries
        self._card_key = card_key
        self._told: tuple[float, float] | None = None
        """What the last `Date` of an answer was, and when it came by the monotonic clock, both in seconds."""

    @property
    def box_time(self) -> float | None:
        """The time of the box in seconds, by its last answer: the clock of this machine may be wrong. None before any told it."""
        return None if self._told is None else self._told[0] + time.monotonic() - self._told[1]

    def call(
        self,
        method: str,
        path: str,
        ids: Mapping[str, str | int],
        kind: str,
        given: Any,
        answer: str,
        options: Options,
    ) -> Steps:
        if path == "/identities/{identity_id}/cards" and method == "POST" and "number" in (given or {}):
            given = sealed_card(self._card_key, given)
        filled = re.sub(r"\{(\w+)\}", lambda name: _segment(name[1], ids[name[1]]), path)
        url = f"{self._url}{filled}"
        timeout = options.get("timeout", self._timeout)
        once = method == "POST" and kind != "octets"
        headers: dict[str, str] = {}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        if once:
            headers["Idempotency-Key"] = options.get("idempotency_key") or str(uuid.uuid4())
        content: bytes | None = None
        if kind == "octets":
            headers["Content-Type"], content = "application/octet-stream", given
        elif kind == "body":
            headers["Content-Type"], content = "application/json", json.dumps(given or {}, ensure_ascii=False).encode()
        query = _search(given) if kind == "query" and given else None
        lost = False
        attempt = 0
        while True:
            request = httpx.Request(
                method, url, params=query, headers=headers, content=content, extensions={"timeout": _limits(timeout)}
            )
            what = f"{method} {url}"
            told: httpx.Response | Exception = yield request
            if isinstance(told, httpx.Response):
                self._hear(told.headers.get("Date"))
            error = _error(told, what, timeout)
            if error is None:
                assert isinstance(told, httpx.Response)
                if answer == "text":
                    return told.text
                if answer == "octets":
                    return told.content
                try:
                    return told.json()
                except ValueError as problem:
                    told, error = problem, ConnectionError(f"{what} failed: {problem}", "connection_failed")
            # the attempt whose answer was lost has deleted it
            if lost and path.endswith("}") and error.type == "not_found":
                return {"id": list(ids.values())[-1], "deleted": True}
            seconds = _pause_before(error, attempt, method != "POST" or once)
            if seconds is None or attempt >= options.get("retries", self._retries):
                raise error from (told if isinstance(told, Exception) else None)
            lost = lost or (method == "DELETE" and error.status != 429)
            yield Pause(seconds)
            attempt += 1

    def _hear(self, date: str | None) -> None:
        try:
            self._told = (parsedate_to_datetime(date or "").timestamp(), time.monotonic())
        except (ValueError, TypeError):
            # of a proxy; without one what was told before holds
            pass

    def pages(self, method: str, path: str, ids: Mapping[str, str | int], given: Any, options: Options) -> Steps:
        query: dict[str, Any] = dict(given or {})
        while True:
            page = yield from self.call(method, path, ids, "query", query, "page", options)
            yield Rows(page["data"])
            if not page["has_more"] or page["next_cursor"] is None:
                return
            query = {**query, "cursor": page["next_cursor"], "offset": None}


class Caller:
    def __init__(self, http: httpx.Client, calls: Calls) -> None:
        self.http = http
        self.calls = calls

    def call(self, *given: Any) -> Any:
        return self.take(self.calls.call(*given))

    def rows(self, method: str, path: str, ids: Mapping[str, str | int], _: str, query: Any, __: str, options: Options) -> Iterator[Any]:
        return self.hand_out(self.calls.pages(method, path, ids, query, options))

    def take(self, steps: Steps) -> Any:
        """What the steps return."""
        told: Any = None
        try:
            while True:
                told = self._do(steps.send(told))
        except StopIteration as end:
            return end.value

    def hand_out(self, steps: Steps) -> Iterator[Any]:
        """The rows among the steps."""
        told: Any = None
        while True:
            try:
                step = steps.send(told)
            except StopIteration:
                return
            told = None
            if isinstance(step, Rows):
                yield from step.rows
            else:
                told = self._do(step)

    def _do(self, step: Step) -> httpx.Response | Exception | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
        elif isinstance(step, httpx.Request):
            try:
                return self.http.send(step, follow_redirects=False)
            except httpx.RequestError as error:
                return error
        return None


class AsyncCaller:
    def __init__(self, http: httpx.AsyncClient, calls: Calls) -> None:
        self.http = http
        self.calls = calls

    async def call(self, *given: Any) -> Any:
        return await self.take(self.calls.call(*given))

    def rows(
        self, method: str, path: str, ids: Mapping[str, str | int], _: str, query: Any, __: str, options: Options
    ) -> AsyncIterator[Any]:
        return self.hand_out(self.calls.pages(method, path, ids, query, options))

    async def take(self, steps: Steps) -> Any:
        """What the steps return."""
        told: Any = None
        try:
            while True:
                told = await self._do(steps.send(told))
        except StopIteration as end:
            return end.value

    async def hand_out(self, steps: Steps) -> AsyncIterator[Any]:
        """The rows among the steps."""
        told: Any = None
        while True:
            try:
                step = steps.send(told)
            except StopIteration:
                return
            told = None
            if isinstance(step, Rows):
                for row in step.rows:
                    yield row
            else:
                told = await self._do(step)

    async def _do(self, step: Step) -> httpx.Response | Exception | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, httpx.Request):
            try:
                return await self.http.send(step, follow_redirects=False)
            except httpx.RequestError as error:
                return error
        return None


def backoff(attempt: int, most: float) -> float:
    """Half a second, doubled with each attempt up to `most`, less up to a half by chance: those who failed together do not come back together."""
    return float(min(most, 0.5 * 2.0 ** min(attempt, 20)) * (0.5 + random.random() / 2))


def _error(told: httpx.Response | Exception, what: str, timeout: float) -> PillarboxError | None:
    if isinstance(told, httpx.TimeoutException):
        return TimeoutError(f"{what} was not answered within {timeout:g} s.", "timeout")
    if isinstance(told, Exception):
        return ConnectionError(f"{what} failed: {told}", "connection_failed")
    return None if told.is_success else error_from(told)


def _pause_before(error: PillarboxError, attempt: int, twice: bool) -> float | None:
    """Seconds before the next attempt; None when there must be none."""
    status = error.status or 500
    pause = error.retry_after or 0
    # a 429 had no effect; the first attempt may still be under way; anything else may have had one, which only some calls allow twice
    may = status == 429 or error.code == "idempotency_in_flight" or (status >= 500 and twice)
    return max(pause, backoff(attempt, 8)) if may and pause <= longest_pause else None


def _limits(seconds: float) -> dict[str, float]:
    return dict.fromkeys(("connect", "read", "write", "pool"), seconds)


def _search(query: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in query.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.astimezone(timezone.utc).isoformat() if isinstance(value, datetime) else str(value)


def _segment(param: str, value: object) -> str:
    """An id in a path. What would name another path is refused."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and not re.fullmatch(r"\.{0,2}", text):
        return quote(text, safe="")
    raise InvalidRequestError(f"{param} must be an id, not {value!r}.", "invalid_id", param=param)
