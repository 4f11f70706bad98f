"""A recogniser of our own, trained on what is to be published: what is the speech worth?"""

from voxrisk.utility.asr.beam import Search, best_text
from voxrisk.utility.asr.ready import ReadyCell, ready_utility
from voxrisk.utility.asr.recipes import RECIPES, Recipe
from voxrisk.utility.asr.table import Cell
from voxrisk.utility.asr.trained import equal_hours, slice_utility

__all__ = [
    "RECIPES",
    "Cell",
    "ReadyCell",
    "Recipe",
    "Search",
    "best_text",
    "equal_hours",
    "ready_utility",
    "slice_utility",
]
