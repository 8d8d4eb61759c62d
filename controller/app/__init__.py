"""The only place that wires everything: settings in, a running program out."""

from controller.app.commands import migrate_database, print_explanation, print_plan, withdraw_boards
from controller.app.reconciler import Controller, open_controller
from controller.app.serving import Parts, serve
from controller.app.world import World, github_of

__all__ = [
    "Controller",
    "Parts",
    "World",
    "github_of",
    "migrate_database",
    "open_controller",
    "print_explanation",
    "print_plan",
    "serve",
    "withdraw_boards",
]
