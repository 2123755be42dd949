"""In which order einsum contracts its operands, two at a time: the cheapest of all orders, by multiplications and
additions; of very many operands the cheapest pair first.

A path is NumPy's: positions among the operands that are left, whose result is put at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod

from pygpukit.ops.contraction.subscripts import Labels, Product

Path = list[tuple[int, ...]]
_MAX_OPERANDS = 9  # operands of which every order is looked at: 3 to their power steps


def kept(parts: Sequence[Labels], others: Sequence[Labels], result: Labels) -> frozenset[str]:
    """The labels that the product of some operands must have for the others and the result."""
    return frozenset(label for part in parts for label in part).intersection(*[frozenset().union(result, *others)])


def cost(labels: Sequence[Labels], left: frozenset[str], extents: dict[str, int]) -> int:
    """Operations of one contraction: a product for each place of all labels, and an addition where some are summed."""
    every = frozenset().union(*labels)
    return prod(extents[label] for label in every) * (max(len(labels) - 1, 1) + (len(every) > len(left)))


def best(product: Product) -> Path:
    """The path of the fewest operations; greedy beyond nine operands."""
    return _greedy(product) if len(product.terms) > _MAX_OPERANDS else _optimal(product)


def _optimal(product: Product) -> Path:
    terms, extents = product.terms, product.extents
    whole = (1 << len(terms)) - 1

    @cache
    def labels(members: int) -> frozenset[str]:
        inside = [term for k, term in enumerate(terms) if members >> k & 1]
        return kept(inside, [term for k, term in enumerate(terms) if not members >> k & 1], product.result)

    @cache
    def cheapest(members: int) -> tuple[int, int]:
        """(cost of all contractions, the operands on one side of the last of them)."""
        if members & (members - 1) == 0:
            return 0, 0
        split: tuple[int, int] | None = None
        for side in _sides(members):
            pair = (tuple(labels(side)), tuple(labels(members ^ side)))
            total = cheapest(side)[0] + cheapest(members ^ side)[0] + cost(pair, labels(members), extents)
            if split is None or total < split[0]:
                split = total, side
        assert split is not None
        return split

    path: Path = []
    left = [1 << k for k in range(len(terms))]

    def contract(members: int) -> None:
        side = cheapest(members)[1]
        if not side:
            return
        for part in (side, members ^ side):
            contract(part)
        pair = sorted(left.index(part) for part in (side, members ^ side))
        for position in reversed(pair):
            left.pop(position)
        left.append(members)
        path.append(tuple(pair))

    contract(whole)
    return path or [tuple(range(len(terms)))]


def _sides(members: int) -> Iterator[int]:
    """Every way to part the operands in two, once: the side with the lowest of them."""
    lowest = members & -members
    rest = members ^ lowest
    side = rest
    while side:
        side = (side - 1) & rest
        yield side | lowest


def _greedy(product: Product) -> Path:
    left = list(product.terms)
    path: Path = []
    while len(left) > 1:
        steps = []
        for i in range(len(left)):
            for j in range(i + 1, len(left)):
                others = [term for k, term in enumerate(left) if k not in (i, j)]
                stays = kept((left[i], left[j]), others, product.result)
                grown = prod(product.extents[label] for label in stays) - sum(
                    prod(product.extents[label] for label in left[k]) for k in (i, j)
                )
                steps.append((grown, cost((left[i], left[j]), stays, product.extents), i, j, tuple(sorted(stays))))
        _, _, i, j, result = min(steps)
        left.pop(j)
        left.pop(i)
        left.append(result)
        path.append((i, j))
    return path


def report(product: Product, path: Path) -> str:
    """A table of the contractions of a path, with their cost beside that of all operands at once."""
    left, lines, total, largest, max_rank = list(product.terms), [], 0, 0, 0
    for number, positions in enumerate(path):
        taken = [left[k] for k in positions]
        left = [term for k, term in enumerate(left) if k not in positions]
        stays = kept(taken, left, product.result)
        labels = product.result if number == len(path) - 1 else tuple(sorted(stays))
        total += cost(_summed_before(taken, left, product.result), stays, product.extents)
        largest = max(largest, prod(product.extents[label] for label in labels))
        scaling = len(frozenset().union(*taken))
        max_rank = max(max_rank, scaling)
        left.append(labels)
        step = f"{','.join(map(''.join, taken))}->{''.join(labels)}"
        lines.append(f"{scaling:>7}  {step:>24}  {','.join(map(''.join, left))}->{''.join(product.result)}")
    naive = cost(product.terms, frozenset(product.result), product.extents)
    head = (
        f"  Complete contraction:  {product.text}",
        f"         Naive scaling:  {len(product.extents)}",
        f"     Optimized scaling:  {max_rank}",
        f"      Naive FLOP count:  {naive:.3e}",
        f"  Optimized FLOP count:  {total:.3e}",
        f"   Theoretical speedup:  {naive / max(total, 1):.3f}",
        f"  Largest intermediate:  {largest:.3e} elements",
        "-" * 74,
        f"{'scaling':>7}  {'current':>24}  remaining",
        "-" * 74,
    )
    return "\n".join((*head, *lines))


def _summed_before(taken: Sequence[Labels], others: Sequence[Labels], result: Labels) -> list[Labels]:
    """The operands of a contraction without labels that only one of them has: those are summed over first."""
    return [tuple(kept([term], [*taken[:k], *taken[k + 1 :], *others], result)) for k, term in enumerate(taken)]
