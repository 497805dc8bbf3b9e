"""Pictures, drawn with matplotlib (``pip install 'bimichi[plot]'``), which is imported when the first one is drawn.

Functions draw on the Axes they are given, or on those of a new figure, and return them; those that draw several panels
return a Figure. Nothing is shown, saved or set globally. A value has one colour in every picture: -1 blue, 0 white,
+1 red.
"""

from bimichi.plotting.bags import plot_bags
from bimichi.plotting.capacity import plot_capacity
from bimichi.plotting.history import plot_history
from bimichi.plotting.importance import plot_importance
from bimichi.plotting.interaction import plot_interaction, plot_interactions
from bimichi.plotting.lattice import plot_lattice
from bimichi.plotting.maps import plot_map, plot_maps
from bimichi.plotting.matrix import plot_matrix
from bimichi.plotting.roc import plot_roc
from bimichi.plotting.terms import plot_terms

__all__ = [
    "plot_bags",
    "plot_capacity",
    "plot_history",
    "plot_importance",
    "plot_interaction",
    "plot_interactions",
    "plot_lattice",
    "plot_map",
    "plot_maps",
    "plot_matrix",
    "plot_roc",
    "plot_terms",
]
