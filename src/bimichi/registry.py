"""`Registry`: the objectives, solvers, methods, recipes or formats that users choose by name; see docs/extending.md."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from bimichi.errors import warn

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PACKAGE = "bimichi"
Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry]):
    """Entries of one family by name: built in, of installed packages (plug-ins), and registered while running.

    Built-in entries come first, then plug-ins by name, then what was registered. Each is imported when it is looked up,
    or all are listed; packages are searched for plug-ins when a name is not built in. A plug-in that cannot be used is
    left out with a warning.

    Parameters
    ----------
    group : str
        The group of entry points by which packages declare plug-ins, such as "bimichi.solvers".
    built_in : mapping of str to str
        Built-in entries, each as an entry point writes it: "module:attribute". pyproject.toml declares the same; this
        table counts, so that the program also runs where it was not installed.
    check : callable
        ``check(name, loaded)`` returns the entry of what an entry point loads, or raises an error.
    newest_first : bool, default=False
        Whether the order is reversed, so that entries that were added are tried before those built in.
    """

    def __init__(
        self, group: str, built_in: Mapping[str, str], check: Callable[[str, Any], Entry], newest_first: bool = False
    ) -> None:
        self.group, self.built_in = group, MappingProxyType(dict(built_in))
        self._check, self._newest_first = check, newest_first
        self._loaded: dict[str, Entry] = {}
        self._registered: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        if name in self._registered:
            return self._registered[name]
        if name not in self._loaded:
            if name in self.built_in:
                module, _, attribute = self.built_in[name].partition(":")
                self._loaded[name] = self._check(name, attrgetter(attribute)(import_module(module)))
            elif name in self._plug_ins:
                self._load_plug_in(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def names(self) -> Iterator[str]:
        """Yield all names in order, without importing what they stand for."""
        if not self._newest_first:
            yield from self.built_in
        added = list(dict.fromkeys([*self._plug_ins, *self._registered]))
        yield from reversed(added) if self._newest_first else added
        if self._newest_first:
            yield from self.built_in

    def register(self, name: str, loaded: Any) -> Entry:
        """Add an entry, checked, for as long as the program runs; the caller sees to it that its name is free."""
        self._registered[name] = self._check(name, loaded)
        return self._registered[name]

    def forget(self, name: str) -> None:
        """Remove an entry that was registered."""
        del self._registered[name]

    def leave_out(self, name: str, reason: object) -> None:
        """Leave out a plug-in from now on, with a warning."""
        self._loaded.pop(name, None)
        self._warn(self._plug_ins.pop(name), reason)

    def _load_plug_in(self, name: str) -> None:
        try:
            self._loaded[name] = self._check(name, self._plug_ins[name].load())
        except (Exception, SystemExit) as error:  # whatever its module does
            self.leave_out(name, f"{type(error).__name__}: {error}")

    @cached_property
    def _plug_ins(self) -> dict[str, "EntryPoint"]:
        plug_ins: dict[str, EntryPoint] = {}
        try:
            declared = sorted(_declared().select(group=self.group), key=lambda entry: (entry.name, _package(entry)))
        except Exception as error:  # the metadata of some package is damaged
            warn(
                f"Packages cannot be searched for plug-ins ({self.group}): {error}",
                code="plug-ins-unsearched",
                stacklevel=4,
            )
            return plug_ins
        for entry in declared:
            if _package(entry) == PACKAGE:  # which are built in; what an earlier version declared is gone
                continue
            if entry.name in self.built_in or entry.name in plug_ins:
                self._warn(entry, "another has its name")
            else:
                plug_ins[entry.name] = entry
        return plug_ins

    def _warn(self, entry: "EntryPoint", reason: object) -> None:
        origin = f"{self.group}, {entry.value} of {_package(entry) or 'a package'}"
        warn(f"The plug-in {entry.name!r} ({origin}) is left out: {reason}.", code="plug-in-left-out", stacklevel=4)


@cache
def _declared() -> Any:
    """Return the entry points of all installed packages, which takes some milliseconds."""
    from importlib.metadata import entry_points  # not at the top: most look-ups need not search

    return entry_points()


def _package(entry: "EntryPoint") -> str:
    return "" if entry.dist is None else entry.dist.name
