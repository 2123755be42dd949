"""Tree: the messages of a conversation with all its branches, and the one that is chosen."""

from __future__ import annotations

from typing import TypeAlias

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.message import Message, Role

Mark: TypeAlias = "tuple[int | None, dict[int, Message]]"


class Tree:
    """Messages by number; each follows its parent. head: the last of the branch that is chosen, None before any."""

    def __init__(self) -> None:
        self.head: int | None = None
        self._all: dict[int, Message] = {}
        self._next = 0

    def path(self) -> list[Message]:
        """The chosen branch, from its beginning."""
        messages, at = [], self.head
        while at is not None:
            messages.append(self._all[at])
            at = self._all[at].parent
        return messages[::-1]

    def of(self, number: int | None, role: Role | None = None) -> Message:
        """The message of a number. Raises InvalidSpecError where there is none, or it is of another role."""
        if isinstance(number, int) and not isinstance(number, bool) and number in self._all:
            message = self._all[number]
            if role is None or message.role == role:
                return message
        raise InvalidSpecError(f"there is no message {number!r}{f' of role {role}' if role else ''}", "number")

    def add(self, role: Role, parent: int | None, text: str = "") -> Message:
        """A new message, which the chosen branch ends with."""
        message = Message(self._next, role, parent, text)
        self._next += 1
        self._all[message.number] = message
        self.head = message.number
        return message

    def siblings(self, message: Message) -> list[Message]:
        """The message and those in its place on other branches, oldest first."""
        return [
            sibling
            for sibling in self._all.values()
            if sibling.parent == message.parent and sibling.role == message.role
        ]

    def choose(self, number: int) -> None:
        """Go to the branch of a message, and on it to what was said last."""
        self.head = self.of(number).number
        self._go_on()

    def delete(self, number: int) -> None:
        """Take out a question and its answers; what follows an answer follows what came before the question."""
        question = self.of(number)
        if question.role == "assistant":
            question = self.of(question.parent)
        gone = {question.number, *(reply.number for reply in self._all.values() if reply.parent == question.number)}
        shown = any(reply.number in gone for reply in self.path())
        for message in self._all.values():
            if message.parent in gone and message.number not in gone:
                message.parent = question.parent
        self._all = {number: message for number, message in self._all.items() if number not in gone}
        if self.head in gone:
            self.head = question.parent
            if shown:
                self._go_on()

    def mark(self) -> Mark:
        """The mark that back() returns to."""
        return self.head, dict(self._all)

    def back(self, mark: Mark) -> None:
        """Take out what was added since."""
        self.head, self._all = mark[0], dict(mark[1])

    def _go_on(self) -> None:
        """From the head to what was said last after it."""
        for message in self._all.values():  # who answers is newer than what is answered
            if message.parent == self.head and (self.head is None or message.number > self.head):
                self.head = message.number
