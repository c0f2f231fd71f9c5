"""Cards, encrypted before they leave the machine. Needs `pillarbox[cards]`."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from typing import Any, cast

from .errors import PillarboxError
from .webhooks import from_base64


def new_card_key() -> str:
    """A new card key, in base64. Keep it where the box cannot read it: without it nobody can read the cards."""
    return base64.b64encode(os.urandom(32)).decode()


def encrypt_card(card_key: bytes | str, details: Mapping[str, Any]) -> str:
    """AES-256-GCM: base64 of a fresh nonce of 12 bytes, the ciphertext and the tag of 16 bytes, as `encrypted_data` is stored."""
    nonce = os.urandom(12)
    text = json.dumps(dict(details), ensure_ascii=False, separators=(",", ":")).encode()
    return base64.b64encode(nonce + bytes(_cipher(card_key).encrypt(nonce, text, None))).decode()


def decrypt_card(card_key: bytes | str, encrypted_data: str) -> dict[str, Any]:
    """Raises PillarboxError, code `card_unreadable`, when it was encrypted under another key, or changed."""
    cipher = _cipher(card_key)
    sealed = from_base64(encrypted_data)
    try:
        return cast("dict[str, Any]", json.loads(cipher.decrypt(sealed[:12], sealed[12:], None)))
    except Exception as cause:
        raise PillarboxError("The card was encrypted under another card key, or changed since.", "card_unreadable") from cause


def brand_of(number: str) -> str:
    """By the first digits (ISO/IEC 7812)."""
    return next((brand for pattern, brand in _brands if re.match(pattern, number)), "other")


_brands = [
    ("4", "visa"),
    ("5[1-5]|2[2-7]", "mastercard"),
    ("3[47]", "amex"),
    ("6011|64|65", "discover"),
    ("35", "jcb"),
    ("3[068]", "diners"),
    ("62", "unionpay"),
]

_told = ("label", "card_name", "budget", "budget_cents", "currency", "period")


def sealed_card(card_key: bytes | str | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent of a card with a number: it is encrypted, and so is all that is not known to be harmless."""
    if card_key is None:
        message = "To store a number, make the client with a card_key (of new_card_key)."
        raise PillarboxError(message, "no_card_key", param="card_key")
    details = {name: value for name, value in body.items() if name not in _told and name != "brand"}
    number = str(details["number"])
    return {
        **{name: body[name] for name in _told if name in body},
        "exp_month": details.get("exp_month"),
        "exp_year": details.get("exp_year"),
        "last4": number[-4:],
        "brand": body.get("brand") or brand_of(number),
        "encrypted_data": encrypt_card(card_key, details),
    }


def _cipher(card_key: bytes | str) -> Any:
    key = from_base64(card_key) if isinstance(card_key, str) else card_key
    if len(key) != 32:
        raise PillarboxError(f"A card key has 32 bytes, not {len(key)}. new_card_key() makes one.", "bad_card_key", param="card_key")
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as cause:
        raise PillarboxError("Cards need the extra: pip install 'pillarbox[cards]'", "no_cryptography") from cause
    return AESGCM(key)
