"""Learn a measure: objectives, spaces, problems, solvers, and the choice among candidates."""

__all__: list[str] = []
