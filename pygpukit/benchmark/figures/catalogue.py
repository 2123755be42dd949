"""All figures by name."""

from . import contests, copies, operators, requests, shapes, tenants
from .picture import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for module in (operators, shapes, contests, requests, copies, tenants)
    for figure in module.FIGURES
}
