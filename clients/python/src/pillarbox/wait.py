"""Waiting for messages by `GET …/wait`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from .calls import Calls, Options, Pause, Steps
from .errors import PillarboxError, TimeoutError, is_passing

_longest_call = 50
"""Proxies often cut a call off after a minute: a longer wait is several calls. In seconds."""

_look_back = 120
"""How far back a wait without `since` looks, in seconds."""


class Waits:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._returned: set[str] = set()

    def next(self, identity: Any, timeout: float, query: dict[str, Any], fits: Callable[[Any], bool]) -> Steps:
        """The first message that fits. Raises TimeoutError, code `no_message`."""
        ids = {"identity_id": identity if isinstance(identity, str) else identity["id"]}
        begun = time.monotonic()
        end = begun + timeout
        since = query["since"]
        lost = again = False
        while True:
            try:
                # the box may have answered, and returns that message again only if it is asked from before it
                if lost and since is None:
                    start = (yield from self._box_time(ids)) - (time.monotonic() - begun) - _look_back
                    since = datetime.fromtimestamp(start, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
                    again = True
                left = end - time.monotonic()
                seconds = max(0, min(_longest_call, math.ceil(left)))
                options: Options = {"timeout": seconds + 15.0, "retries": 0}
                asked = {**query, "since": since, "timeout": seconds}
                answer = yield from self._calls.call("GET", "/identities/{identity_id}/wait", ids, "query", asked, "json", options)
            except PillarboxError as error:
                if not is_passing(error) or time.monotonic() >= end:
                    raise
                lost = True
                yield Pause(max(error.retry_after or 0, 1))
                continue
            item = answer["item"]
            if item and not (again and item["id"] in self._returned) and fits(answer):
                if len(self._returned) > 1000:
                    self._returned.clear()
                self._returned.add(item["id"])
                return answer
            since = answer["since"] or since
            if answer["timed_out"] and left <= seconds:
                break
        who, what = query["from"], query["subject_contains"]
        told = f"{f' from {who}' if who else ''}{f' about {what}' if what else ''}"
        raise TimeoutError(f"No message{told} arrived within {timeout:g} s.", "no_message")

    def _box_time(self, ids: dict[str, Any]) -> Steps:
        """Any answer tells it; without one that is known yet, the box is asked. Raises what may pass."""
        if self._calls.box_time is None:
            try:
                yield from self._calls.call("GET", "/identities/{identity_id}", ids, "", None, "json", {"timeout": 15, "retries": 0})
            except PillarboxError as error:
                if is_passing(error) and self._calls.box_time is None:
                    raise
        told = self._calls.box_time
        # what is between may leave it out
        return time.time() if told is None else told
