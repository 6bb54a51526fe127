"""Who may ask: the Host and Origin of every request, the token, the size of its body; and headers of every answer."""

from __future__ import annotations

import hmac
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "himecat_token"
MOST_BYTES = 16 * 1024 * 1024
"""The longest body."""

_MOST_DRAINED = 4 * MOST_BYTES
_SAFE = ("GET", "HEAD", "OPTIONS")
_PAGES = ("/", "/docs")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
# A page elsewhere can send these without asking first.
_SIMPLE_TYPES = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; worker-src 'self' blob:; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


def is_loopback(host: str) -> bool:
    """Whether an address is that of this machine only.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Rules:
    """Where the server listens, and what it asks for.

    Examples
    --------
    >>> rules = Rules("127.0.0.1", 8765)
    >>> rules.knows("localhost:8765"), rules.knows("evil.example:8765"), rules.knows("localhost:80")
    (True, False, False)
    """

    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    most_bytes: int = MOST_BYTES

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server; a name that somebody else's DNS leads here does not."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if parts.path or parts.username is not None or (80 if port is None else port) != self.port:
            return False
        if name in _LOOPBACK_NAMES or name == self.host.strip("[]").lower():
            return True
        if self.host in ("0.0.0.0", "::"):
            return _is_address(name) or name == socket.gethostname().lower()
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _TooLong(Exception):
    pass


class Guard:
    """Stands before the application: what it refuses never gets there."""

    def __init__(self, app: App, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answered, read = False, 0

        async def guarded(message: Message) -> None:
            nonlocal answered
            if read > self._rules.most_bytes and not answered:
                return  # whatever the application makes of it, it has seen a part only
            if message["type"] == "http.response.start":
                answered = True
                own = {name.lower() for name, _ in message.get("headers", [])}
                message["headers"] = [
                    *message.get("headers", []),
                    *(
                        (name.encode(), value.encode())
                        for name, value in _HEADERS.items()
                        if name.encode() not in own
                    ),
                ]
            await send(message)

        if refused := self._refusal(scope, headers):
            if refused[0] == 413:
                await _drained(receive, _MOST_DRAINED)
            await _answer(guarded, *refused)
            return
        if self._rules.token is not None and (token := _asked_token(scope)) is not None:
            await self._let_in(guarded, token)
            return

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._rules.most_bytes:
                raise _TooLong
            return message

        with suppress(_TooLong):
            await self._app(scope, bounded, guarded)
        if read > self._rules.most_bytes and not answered:
            await _drained(receive, _MOST_DRAINED - read)
            read = 0
            await _answer(guarded, *self._too_long())

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        rules = self._rules
        host = headers.get("host", "")
        if not rules.knows(host):
            return (
                403,
                "This server does not go by that name: open it under the address that it was started with.",
            )
        unsafe = scope["method"] not in _SAFE
        # Old browsers and programs don't say it; links to the page itself may be anywhere.
        elsewhere = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        linked = headers.get("sec-fetch-mode") == "navigate" and scope["path"] in _PAGES
        if elsewhere and (unsafe or not linked):
            return 403, "The request comes from the page of another site."
        origin = headers.get("origin")
        if origin is not None and (unsafe or origin != "null") and origin.lower() != f"http://{host}".lower():
            return 403, "The request comes from the page of another site."
        if rules.token is not None and scope["path"] != "/health" and not self._has_token(scope, headers):
            return 401, "A token is needed: Authorization: Bearer TOKEN, or open /?token=TOKEN once."
        if (
            scope["method"] == "POST"
            and headers.get("content-type", "").partition(";")[0].strip().lower() in _SIMPLE_TYPES
        ):
            return 415, "Send JSON, as application/json."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > rules.most_bytes:
            return self._too_long()
        return None

    def _too_long(self) -> tuple[int, str]:
        return 413, f"The body is longer than {self._rules.most_bytes // (1024 * 1024)} MB: send it in parts."

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        token = self._rules.token or ""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        shown = [given.strip()] if scheme.lower() == "bearer" else []
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        if cookie is not None:
            shown.append(cookie.value)
        if (asked := _asked_token(scope)) is not None:
            shown.append(asked)
        return any(hmac.compare_digest(one.encode(), token.encode()) for one in shown)

    async def _let_in(self, send: Send, token: str) -> None:
        """The page cannot add headers to its first request: the token moves from the address into a cookie."""
        cookie: SimpleCookie = SimpleCookie()
        cookie[COOKIE] = token
        cookie[COOKIE]["path"], cookie[COOKIE]["samesite"] = "/", "Strict"
        cookie[COOKIE]["httponly"] = True
        headers = [(b"location", b"/"), (b"set-cookie", cookie[COOKIE].OutputString().encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _asked_token(scope: Scope) -> str | None:
    if scope["path"] != "/":
        return None
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
    return asked[0] if asked else None


async def _drained(receive: Receive, most: int) -> None:
    """Read the rest of a body that is not wanted: who still sends it does not see the answer."""
    while most > 0:
        message = await receive()
        most -= len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return


async def _answer(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
