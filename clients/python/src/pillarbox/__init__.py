"""Client of a Pillarbox: mail, SMS, cards and one-time passwords for software agents."""

from .cards import decrypt_card, encrypt_card, new_card_key
from .client import Arrived, ArrivedCode, AsyncPillarbox, Pillarbox
from .errors import (
    ConflictError,
    ConnectionError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    PillarboxError,
    RateLimitedError,
    ServerError,
    TimeoutError,
    UnauthorizedError,
)
from .events import AsyncEventStream, EventStream
from .webhooks import verify_webhook

__all__ = [
    "Arrived",
    "ArrivedCode",
    "AsyncEventStream",
    "AsyncPillarbox",
    "ConflictError",
    "ConnectionError",
    "EventStream",
    "ForbiddenError",
    "InvalidRequestError",
    "NotFoundError",
    "Pillarbox",
    "PillarboxError",
    "RateLimitedError",
    "ServerError",
    "TimeoutError",
    "UnauthorizedError",
    "decrypt_card",
    "encrypt_card",
    "new_card_key",
    "verify_webhook",
]
