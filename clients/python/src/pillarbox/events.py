"""Events as they happen, from the feed of the account."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

from . import types as t
from .calls import AsyncCaller, Caller, Calls, Options, Pause, Rows, Steps, backoff
from .errors import PillarboxError, is_passing

_wait = 50
"""Proxies often cut a call off after a minute. In seconds."""


class _Feed:
    """Where a program is in the feed."""

    def __init__(
        self, calls: Calls, identity_id: str | None, types: str | None, since: str | None, on_reconnect: Callable[[PillarboxError], None] | None
    ) -> None:
        self._calls = calls
        self._filter: dict[str, Any] = {"identity_id": identity_id, "types": types}
        self._since = since
        self._on_reconnect = on_reconnect

    def begin(self) -> Steps:
        """Fixes where the events begin, so that every event from now on comes."""
        if self._since is None:
            answer = yield from self._ask({"limit": 1})
            # of a log without any event everything will be new
            self._since = answer.get("since") or "1970-01-01T00:00:00Z"

    def events(self) -> Steps:
        yield from self.begin()
        since = self._since
        cursor: str | None = None
        attempt = 0
        while True:
            place = {"cursor": cursor} if cursor else {"wait": _wait}
            try:
                answer = yield from self._ask({"since": since, "limit": 200, **place}, retries=0, timeout=_wait + 15.0)
            except PillarboxError as error:
                if not is_passing(error):
                    raise
                if self._on_reconnect:
                    self._on_reconnect(error)
                yield Pause(max(error.retry_after or 0, backoff(attempt, 30)))
                attempt += 1
                continue
            attempt = 0
            for event in answer["data"]:
                # a program that leaves the loop here goes on after it in the next
                self._since = event["id"]
                yield Rows([event])
            cursor = answer["next_cursor"] if answer["has_more"] else None
            if cursor is None:
                since = self._since = answer.get("since") or self._since

    def _ask(self, query: dict[str, Any], **options: Any) -> Steps:
        given = {**self._filter, **query}
        return (yield from self._calls.call("GET", "/events", {}, "query", given, "page", cast(Options, options)))


class EventStream:
    """
    Events in the order of the log, each once: `for event in client.events()`. A connection that breaks is made again from the last event that
    came, so that none is lost. Raises what another attempt cannot mend, such as `since_expired`.
    """

    def __init__(self, caller: Caller, *about: Any) -> None:
        self._caller = caller
        self._feed = _Feed(caller.calls, *about)

    def ready(self) -> EventStream:
        """Returns when every event from now on will come."""
        self._caller.take(self._feed.begin())
        return self

    def __iter__(self) -> Iterator[t.Event]:
        return self._caller.hand_out(self._feed.events())


class AsyncEventStream:
    """As EventStream, for asyncio: `async for event in client.events()`."""

    def __init__(self, caller: AsyncCaller, *about: Any) -> None:
        self._caller = caller
        self._feed = _Feed(caller.calls, *about)

    async def ready(self) -> AsyncEventStream:
        """Returns when every event from now on will come."""
        await self._caller.take(self._feed.begin())
        return self

    def __aiter__(self) -> AsyncIterator[t.Event]:
        return self._caller.hand_out(self._feed.events())
