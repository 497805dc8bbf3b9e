"""Beyond memory and one machine."""

__all__: list[str] = []
