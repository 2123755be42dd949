"""Links between the devices of this process: what they are, what they carry, and what was moved over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.device import device_count
from pygpukit.core.nvlink import Wire, wire
from pygpukit.core.nvml import NvmlDevice, NvmlUnavailableError


@dataclass(frozen=True)
class Link:
    """The way of copies from one device to another.

    kind: "nvlink", "nvswitch", "pcie", "simulated", "peer" where nobody names the wire, "host" where there is no access
    and copies go by way of the host. lanes: NVLinks or PCIe lanes, 0 where nobody says. bytes_per_s: of the wire, each
    way, and latency_s of one copy; None where nobody says. atomics: whether atomic operations on the peer's memory are
    atomic for both devices, None where nobody says. enabled: kernels may use the peer's memory. copies, direct_bytes,
    host_bytes: by this process from the device to the peer so far, straight and by way of the host.
    """

    device: int
    peer: int
    kind: str
    lanes: int
    bytes_per_s: float | None
    latency_s: float | None
    access: bool
    enabled: bool
    atomics: bool | None
    copies: int
    direct_bytes: int
    host_bytes: int


class Links:
    """All links at one moment: links[0, 1] is the one from device 0 to device 1; in order when iterated."""

    def __init__(self, rows: list[Link]) -> None:
        self._rows = {(row.device, row.peer): row for row in rows}

    def __getitem__(self, pair: tuple[int, int]) -> Link:
        return self._rows[pair]

    def __iter__(self) -> Iterator[Link]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        """A row a device that copies, a column a device that is copied to: kind, rate, GB moved."""
        if not self._rows:
            return "no links: there is one device"
        places = sorted({row.device for row in self})
        cells = [["", *(f"to {place}" for place in places)]]
        for place in places:
            cells.append([f"from {place}", *("-" if place == to else _cell(self[place, to]) for to in places)])
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells
        )

    def __repr__(self) -> str:
        return f"<Links of {len({row.device for row in self}) or 1} devices>\n{self}"


def _cell(link: Link) -> str:
    name = f"{link.lanes} {link.kind}" if link.lanes else link.kind
    rate = f" {link.bytes_per_s / 1e9:.0f} GB/s" if link.bytes_per_s else ""
    return f"{name}{rate}, {(link.direct_bytes + link.host_bytes) / 1e9:.3g} GB moved"


def links() -> Links:
    """Look at the links between all devices.

    Returns
    -------
    Links
        Indexed by (device, peer): the kind of wire, its bytes a second as the driver and NVML say, and the bytes that
        this process copied over it. Its text is a matrix.

    Raises
    ------
    DriverError
        The driver does not answer.

    Examples
    --------
    >>> [link.kind for link in gp.cuda.links() if link.device == 0 and link.kind == "host"]
    []
    """
    count = device_count()
    return Links([_link(device, peer) for device in range(count) for peer in range(count) if device != peer])


def _link(device: int, peer: int) -> Link:
    info = native.peer_info(device, peer)
    access = bool(info["access"])
    named = _wire(device, peer) if access and not is_sim() else None
    kind = "host" if not access else "simulated" if is_sim() else named.kind if named else "peer"
    rate = info["bytes_per_s"] or (named.bytes_per_s if named else None)
    copies, direct, by_host = native.peer_traffic(device, peer)
    return Link(
        device=device, peer=peer, kind=kind, lanes=named.lanes if named else 0, bytes_per_s=rate or None,
        latency_s=info["latency_s"] or None, access=access, enabled=bool(info["enabled"]),
        atomics=None if info["atomics"] < 0 else bool(info["atomics"]), copies=copies, direct_bytes=direct,
        host_bytes=by_host,
    )  # fmt: skip


@cache
def _wire(device: int, peer: int) -> Wire | None:
    try:
        ends = [NvmlDevice(native.device_info(place)["uuid"]) for place in (device, peer)]
    except NvmlUnavailableError:
        return None
    return wire(*ends)
