"""A server of viser that only this machine reaches, and only with the token that stands in the address."""

from __future__ import annotations

import http
import io
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from threading import Lock
from typing import Any

from ...errors import InputError
from ...io.packages import package

LOOPBACK = "127.0.0.1"
_STARTING = Lock()


def opened(port: int, label: str) -> tuple[Any, str]:
    """A server, and the address with its token. port: 0 is any that is free. InputError where it is taken."""
    viser = package("viser", "a window")
    taken = f"view: port {port} is in use or not allowed; give another, or 0 for any that is free"
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise InputError(f"view: port must be a whole number below 65536, not {port!r:.40}")
    with socket.socket() as probe:  # viser would go on to the next one without a word
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            raise InputError(taken) from None
        port = probe.getsockname()[1]
    token = secrets.token_urlsafe(16)
    with _STARTING, _gated(token), redirect_stdout(io.StringIO()):  # it would print an address without the token
        server = viser.ViserServer(host=LOOPBACK, port=port, label=label, verbose=False)
    if server.get_port() != port:
        server.stop()
        raise InputError(taken)
    return server, f"http://{LOOPBACK}:{port}/{token}"


@contextmanager
def _gated(token: str) -> Iterator[None]:
    """While a server starts: it answers paths below the token only, pages and sockets alike."""
    asyncio = package("websockets.asyncio.server", "a window")
    serve = asyncio.serve

    def guarded(*args: Any, process_request: Callable[..., Any], **more: Any) -> Any:
        return serve(*args, process_request=behind(token, process_request), **more)

    asyncio.serve = guarded
    try:
        yield
    finally:
        asyncio.serve = serve


def behind(token: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """An answer to requests that names the token first, and refuses others."""

    def process(connection: Any, request: Any) -> Any:
        given, _, rest = request.path.removeprefix("/").partition("?")[0].partition("/")
        if not secrets.compare_digest(given.encode(), token.encode()):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "open the address that Drevo printed\n")
        request.path = f"/{rest}"
        return answer(connection, request)

    return process
