"""Values that objects make once and keep: two objects make theirs at the same time."""

from __future__ import annotations

import threading

from pygpukit.core.cached import cached_property

PATIENCE_S = 60


class Holder:
    def __init__(self, meet: threading.Barrier) -> None:
        self.meet = meet
        self.made = 0

    @cached_property
    def value(self) -> int:
        """What is made."""
        self.meet.wait(PATIENCE_S)  # for ever, and then broken, where one waits for the other to be done
        self.made += 1
        return self.made


def test_two_objects_make_their_values_at_the_same_time() -> None:
    meet = threading.Barrier(2)
    holders, found = [Holder(meet), Holder(meet)], []
    threads = [threading.Thread(target=lambda one=one: found.append(one.value)) for one in holders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [1, 1]
    assert [one.value for one in holders] == [1, 1]
    assert Holder.value.__doc__ == "What is made."
