"""The clients of one box, with one key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import httpx

from . import types as t
from .calls import AsyncCaller, Caller, Calls
from .errors import PillarboxError
from .events import AsyncEventStream, EventStream
from .methods import AsyncMethods, Methods
from .wait import Waits

Identity = Any
"""The id of an identity, or the identity."""

Channel = Literal["email", "sms", "any"]


class Arrived(t.WaitAnswer):
    """A message with the codes and links in it, as `item`. `since` continues after it."""


class ArrivedCode(Arrived):
    code: str


class Pillarbox(Methods):
    """`Pillarbox("https://box.example.com", api_key)`; end it with `close()` or use it in `with`."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        card_key: bytes | str | None = None,
        timeout: float = 60,
        retries: int = 3,
        http: httpx.Client | None = None,
    ) -> None:
        self._caller = Caller(http or httpx.Client(), Calls(base_url, api_key, timeout, retries, card_key))
        self._waits = Waits(self._caller.calls)
        super().__init__(self._caller)

    def events(
        self,
        *,
        identity: Identity = None,
        types: Sequence[t.EventType] | None = None,
        since: str | None = None,
        on_reconnect: Callable[[PillarboxError], None] | None = None,
    ) -> EventStream:
        """Events as they happen. `since`: the `id` of the last event that was handled, or a time; by default only new events."""
        return EventStream(self._caller, id_of(identity), named(types), since, on_reconnect)

    def wait_for_message(
        self,
        identity: Identity,
        *,
        sender: str | None = None,
        subject: str | None = None,
        channel: Channel | None = None,
        timeout: float = 60,
        since: str | None = None,
        spam: bool | None = None,
    ) -> Arrived:
        """The next message. Raises TimeoutError, code `no_message`."""
        query = wish(sender, subject, channel, since, spam)
        return cast(Arrived, self._caller.take(self._waits.next(identity, timeout, query, any_message)))

    def wait_for_code(
        self,
        identity: Identity,
        *,
        sender: str | None = None,
        subject: str | None = None,
        channel: Channel | None = None,
        timeout: float = 60,
        since: str | None = None,
        spam: bool | None = None,
    ) -> ArrivedCode:
        """The next message with a code in it; `code` is the first. Raises TimeoutError, code `no_message`."""
        query = wish(sender, subject, channel, since, spam)
        return with_code(self._caller.take(self._waits.next(identity, timeout, query, has_code)))

    def close(self) -> None:
        self._caller.http.close()

    def __enter__(self) -> Pillarbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncPillarbox(AsyncMethods):
    """As Pillarbox, for asyncio; end it with `await aclose()` or use it in `async with`."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        card_key: bytes | str | None = None,
        timeout: float = 60,
        retries: int = 3,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._caller = AsyncCaller(http or httpx.AsyncClient(), Calls(base_url, api_key, timeout, retries, card_key))
        self._waits = Waits(self._caller.calls)
        super().__init__(self._caller)

    def events(
        self,
        *,
        identity: Identity = None,
        types: Sequence[t.EventType] | None = None,
        since: str | None = None,
        on_reconnect: Callable[[PillarboxError], None] | None = None,
    ) -> AsyncEventStream:
        """Events as they happen. `since`: the `id` of the last event that was handled, or a time; by default only new events."""
        return AsyncEventStream(self._caller, id_of(identity), named(types), since, on_reconnect)

    async def wait_for_message(
        self,
        identity: Identity,
        *,
        sender: str | None = None,
        subject: str | None = None,
        channel: Channel | None = None,
        timeout: float = 60,
        since: str | None = None,
        spam: bool | None = None,
    ) -> Arrived:
        """The next message. Raises TimeoutError, code `no_message`."""
        query = wish(sender, subject, channel, since, spam)
        return cast(Arrived, await self._caller.take(self._waits.next(identity, timeout, query, any_message)))

    async def wait_for_code(
        self,
        identity: Identity,
        *,
        sender: str | None = None,
        subject: str | None = None,
        channel: Channel | None = None,
        timeout: float = 60,
        since: str | None = None,
        spam: bool | None = None,
    ) -> ArrivedCode:
        """The next message with a code in it; `code` is the first. Raises TimeoutError, code `no_message`."""
        query = wish(sender, subject, channel, since, spam)
        return with_code(await self._caller.take(self._waits.next(identity, timeout, query, has_code)))

    async def aclose(self) -> None:
        await self._caller.http.aclose()

    async def __aenter__(self) -> AsyncPillarbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def id_of(identity: Identity) -> str | None:
    return cast("str | None", identity if identity is None or isinstance(identity, str) else identity["id"])


def named(types: Sequence[str] | None) -> str | None:
    return None if types is None else ",".join(types)


def wish(sender: str | None, subject: str | None, channel: str | None, since: str | None, spam: bool | None) -> dict[str, Any]:
    return {"from": sender, "subject_contains": subject, "channel": channel, "since": since, "spam": spam}


def any_message(_: object) -> bool:
    return True


def has_code(answer: t.WaitAnswer) -> bool:
    return len(answer["codes"]) > 0


def with_code(answer: Any) -> ArrivedCode:
    return cast(ArrivedCode, {**answer, "code": answer["codes"][0]})
