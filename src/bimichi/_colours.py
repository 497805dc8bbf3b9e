"""What pictures and pages have in common about colours."""

INK = "#222222"
WHITE = "#ffffff"


def ink_on(red: float, green: float, blue: float) -> str:
    """Return the ink, dark or white, that is easier to read on a colour, whose parts are in [0, 1]."""
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else WHITE
