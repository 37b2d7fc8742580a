"""A server socket with limits: slow connections are closed, and floods cannot block others.

Every connection must send its request headers within a few seconds. The number of connections is
limited. When all are taken, the oldest connection of the address with the most connections is
closed, so an honest client is always admitted. A connection that was answered before its body was
read is closed. The application sets its own limits for bodies.

Nothing about clients is logged: no access log, no addresses, and no warnings that could fill a
disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any

from quorate import _validate
from quorate.exceptions import MissingExtraError

__all__ = ["Doorkeeping", "household", "listen", "settings"]


@dataclass(frozen=True)
class Doorkeeping:
    """The number of simultaneous connections, and the time limit for request headers.

    Parameters
    ----------
    connections : int, default=400
        Most systems allow 1,024 open files per process; the store and the answers need some of
        them.
    request_seconds : float, default=5.0
        Time limit for all headers of a request.

    Examples
    --------
    >>> Doorkeeping().connections
    400
    """

    connections: int = 400
    request_seconds: float = 5.0

    def __post_init__(self) -> None:
        _validate.positive_integer(connections=self.connections)
        _validate.positive(request_seconds=self.request_seconds)


def household(address: str) -> str:
    """Return the unit of an address: an IPv4 address, or the /64 prefix of an IPv6 address.

    >>> household("192.0.2.7"), household("2001:db8:1:2:3:4:5:6"), household("somewhere")
    ('192.0.2.7', '2001:db8:1:2::', 'somewhere')
    """
    try:
        number = IPv6Address(address)
    except ValueError:
        return address
    if number.ipv4_mapped is not None:
        return str(number.ipv4_mapped)
    return str(IPv6Address(int(number) >> 64 << 64))


def settings(app: Any, keeping: Doorkeeping | None = None) -> Any:
    """Return the settings of a uvicorn server for an application.

    >>> made = settings(None)
    >>> made.access_log, made.log_level
    (False, 'error')
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError(
            "This command needs starlette and uvicorn: pip install 'quorate[serve]'."
        ) from None
    return uvicorn.Config(
        app,
        http=_protocol(Doorkeeping() if keeping is None else keeping),
        ws="none",
        log_level="error",
        access_log=False,  # addresses are nobody's business
        timeout_keep_alive=5,
        server_header=False,
    )


def listen(app: Any, host: str, port: int, announce: Callable[[str], str]) -> None:
    """Serve an application until interrupted; print ``announce`` with its address."""
    ready = settings(app)
    import socket

    import uvicorn

    with socket.create_server((host, port)) as listener:
        print(announce(f"http://{host}:{listener.getsockname()[1]}"), flush=True)
        uvicorn.Server(ready).run(sockets=[listener])


def _protocol(keeping: Doorkeeping) -> type:
    """Return uvicorn's protocol class with the connection limits of one server."""
    import asyncio

    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    places: dict[Guarded, str] = {}  # the oldest first

    class Guarded(H11Protocol):  # type: ignore[misc]
        """One connection with a time limit for its request."""

        deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            places[self] = household(self.client[0]) if self.client else ""
            self.watch()
            if len(places) > keeping.connections:
                self.make_room()

        def connection_lost(self, exc: Exception | None) -> None:
            places.pop(self, None)
            if self.deadline is not None:
                self.deadline.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def on_response_complete(self) -> None:
            if self.conn.their_state is h11.SEND_BODY:
                # The answer did not need the body: reading on would be work for nobody.
                self.transport.close()
            super().on_response_complete()

        def watch(self) -> None:
            """Start the timer when a request is expected; further bytes do not restart it."""
            waited_for = self.conn.their_state is h11.IDLE
            if waited_for and self.deadline is None:
                later = self.loop.call_later
                self.deadline = later(keeping.request_seconds, self.transport.abort)
            elif not waited_for and self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

        def make_room(self) -> None:
            """Close the oldest waiting connection of the address that has the most of them."""
            dawdling = {each: address for each, address in places.items() if each.owes_something()}
            ((busiest, _),) = Counter(dawdling.values()).most_common(1)
            oldest = next(each for each, address in dawdling.items() if address == busiest)
            places.pop(oldest)
            oldest.transport.abort()

        def owes_something(self) -> bool:
            """Whether the client has unfinished input for the server."""
            return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    return Guarded
