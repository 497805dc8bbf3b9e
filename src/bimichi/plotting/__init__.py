"""Pictures, drawn with matplotlib (``pip install 'bimichi[plot]'``), which is imported when the first one is asked for.

Functions draw on the Axes they are given, or on those of a new figure, and return them; those that draw several panels
return a Figure. Nothing is shown, saved or set globally. A value has one colour in every picture: -1 blue, 0 white,
+1 red.
"""

from bimichi.plotting.capacity import plot_capacity
from bimichi.plotting.lattice import plot_lattice
from bimichi.plotting.matrix import plot_matrix

__all__ = [
    "plot_capacity",
    "plot_lattice",
    "plot_matrix",
]
