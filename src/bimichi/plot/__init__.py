"""Pictures, drawn with matplotlib (``pip install 'bimichi[plot]'``), which is imported when the first one is drawn.

Functions draw on the Axes they are given, or on those of a new figure, and return them; those that draw several panels
return a Figure. Nothing is shown, saved or set globally. A value has one colour in every picture: -1 blue, 0 white,
+1 red.
"""

from bimichi.plot.charts import plot_capacity, plot_history, plot_importance, plot_reliability, plot_roc, plot_terms
from bimichi.plot.maps import plot_bags, plot_map, plot_maps
from bimichi.plot.measures import plot_interaction, plot_interactions, plot_lattice, plot_matrix

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
    "plot_reliability",
    "plot_roc",
    "plot_terms",
]
