"""The base of all results of explanations: a table, a data frame, and their display."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from bimichi import _html
from bimichi._extras import import_optional
from bimichi._html import Cell, Table, number
from bimichi.errors import InvalidInputError

TABLE_LIMIT = 3**5
"""Rows of the longest table that is printed; data frames have no limit."""


def percent(share: float) -> str:
    """Write a share in per cent."""
    return f"{100 * share:.0f} %"


class Explanation(ABC):
    """A result that is shown as a table, and can be taken further as a data frame."""

    def _head(self) -> str:
        """Return the line above the table."""
        return type(self).__name__

    @property
    def _note(self) -> str:
        """The line below the table."""
        return ""

    @abstractmethod
    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the data frame by name, all equally long; the first one names the rows."""

    def _text(self, column: str, value: Any) -> str:
        """Return an entry of the table as text."""
        return number(value) if isinstance(value, float) else str(value)

    def to_table(self) -> Table:
        """Return the result as a table."""
        return self._tabulated(self._columns(), "Use to_frame(), or read the arrays of the result.")

    def _tabulated(self, columns: Mapping[str, Sequence[Any]], remedy: str) -> Table:
        texts = [[Cell(self._text(name, value)) for value in column] for name, column in columns.items()]
        rows = list(zip(*texts, strict=True))
        if len(rows) > TABLE_LIMIT:
            raise InvalidInputError(
                f"The table would have {len(rows):,} rows; tables have up to {TABLE_LIMIT} rows. {remedy}",
                code="table-large",
            )
        return Table(list(columns), rows)

    def to_frame(self) -> Any:
        """Return the result as a pandas data frame, its numbers unrounded."""
        return import_optional("pandas").DataFrame(dict(self._columns()))

    def _fits(self) -> bool:
        return len(next(iter(self._columns().values()))) <= TABLE_LIMIT

    def __repr__(self) -> str:
        return f"{self._head()}\n{self.to_table().to_text()}" if self._fits() else self._head()

    def _repr_html_(self) -> str:
        return _html.view(self._head(), *([_html.table(self.to_table())] if self._fits() else []), note=self._note)
