"""RequestError: what is wrong with a request, in the form of OpenAI's protocol."""

from __future__ import annotations

import reprlib
from typing import Any


class RequestError(Exception):
    """An error of a request. status: of the HTTP answer; param and code as OpenAI's errors have them."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        status: int = 400,
        code: str | None = None,
        retry_s: int | None = None,
    ) -> None:
        super().__init__(message.encode("utf-8", "replace").decode())  # whatever it quotes can be sent
        self.param, self.status, self.code, self.retry_s = param, status, code, retry_s

    def body(self) -> dict[str, Any]:
        """The error as the protocol has it."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


def shown(value: Any) -> str:
    """A value of a request in a message: bounded, whatever was sent."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of thousands of digits"
