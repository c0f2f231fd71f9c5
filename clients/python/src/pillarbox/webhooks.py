"""Deliveries by webhook, verified (Standard Webhooks)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import cast

from .errors import PillarboxError
from .types import Event


def verify_webhook(
    raw_body: bytes | str, headers: Mapping[str, str], secret: str, *, tolerance: float = 300, now: float | None = None
) -> Event:
    """
    Verifies a delivery and returns its event. `raw_body` is the body as received, before any parser. Raises PillarboxError: `webhook_unsigned`,
    `webhook_too_old` (more than `tolerance` seconds from now) or `webhook_forged`; answer those with 401.
    `bad_secret`: without a secret nothing is verified.
    """
    fields = {name.lower(): value for name, value in headers.items()}
    identifier, timestamp, signatures = (fields.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not identifier or not timestamp or not signatures:
        raise _refused("unsigned", "has no webhook-signature, webhook-id and webhook-timestamp")
    try:
        age = abs((time.time() if now is None else now) - float(timestamp))
    except ValueError:
        age = float("inf")
    if not age <= tolerance:
        raise _refused("too_old", f"was not sent within {tolerance:g} s of now")
    body = raw_body.encode() if isinstance(raw_body, str) else raw_body
    key = from_base64(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    if not key:
        raise PillarboxError("The secret of the webhook is empty, or no base64 after whsec_.", "bad_secret")
    right = hmac.new(key, f"{identifier}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    for one in signatures.split(" "):
        if one.startswith("v1,") and hmac.compare_digest(from_base64(one[3:]), right):
            return cast(Event, json.loads(body))
    raise _refused("forged", "was not signed with this secret")


def from_base64(text: str) -> bytes:
    """Of either alphabet, with padding or without. Empty when it is neither."""
    try:
        standard = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _refused(code: str, why: str) -> PillarboxError:
    return PillarboxError(f"The webhook request {why}.", f"webhook_{code}")
