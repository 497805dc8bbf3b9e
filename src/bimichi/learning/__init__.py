"""Learning a measure: bags, objectives, problems, solvers, and data that come in parts."""

__all__: list[str] = []
