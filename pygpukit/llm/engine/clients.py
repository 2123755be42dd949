"""Clients: how many tokens each was served, so that who asks for little does not wait behind who asks for much."""

from __future__ import annotations

from dataclasses import dataclass

MAX_REMEMBERED = 256  # clients that have nothing here at the moment


@dataclass
class _Client:
    served: int  # tokens computed for it, and what it was lifted by
    live: int = 0
    running: int = 0


class Clients:
    """Counts of each client that has requests, or was served more than those who have.

    One that comes back is lifted to the least served of those that are here: nobody saves up turns by being away. One
    that was served more keeps its count, as long as that means something, and at most MAX_REMEMBERED do.
    """

    def __init__(self) -> None:
        self._clients: dict[str, _Client] = {}

    def enter(self, name: str) -> None:
        """A request of the client came."""
        client = self._clients.get(name)
        if client is None or not client.live:
            minimum = self._min_served()
            client = self._clients[name] = _Client(max(minimum, client.served if client else 0))
        client.live += 1

    def leave(self, name: str) -> None:
        """A request of the client, which does not run any more, has ended."""
        self._clients[name].live -= 1
        if not self._clients[name].live:
            self._forget()

    def charge(self, name: str, tokens: int) -> None:
        """Tokens were computed for the client."""
        self._clients[name].served += tokens

    def change_running(self, name: str, by: int) -> None:
        """So many more requests of the client run."""
        self._clients[name].running += by

    def served(self, name: str) -> int:
        """The count by which turns are given: the smaller goes first."""
        return self._clients[name].served

    def running(self, name: str) -> int:
        """Requests of the client that run."""
        client = self._clients.get(name)
        return 0 if client is None else client.running

    def _min_served(self) -> int:
        return min((client.served for client in self._clients.values() if client.live), default=0)

    def _forget(self) -> None:
        """Drop who would be lifted anyway, and, of too many, who was served least."""
        minimum = self._min_served()
        away = {name: client.served for name, client in self._clients.items() if not client.live}
        if len(away) == len(self._clients):  # nobody is here: nobody was served more
            self._clients.clear()
            return
        kept = sorted((name for name in away if away[name] > minimum), key=lambda name: away[name])[-MAX_REMEMBERED:]
        for name in away.keys() - set(kept):
            del self._clients[name]
