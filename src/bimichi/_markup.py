"""HTML in which text is text: whatever is not `Markup` is escaped."""

import html


class Markup(str):
    """HTML, to be used as it is."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str | int | float | bool | None) -> Markup:
    """Return an element of HTML; content that is not `Markup` is escaped.

    As attributes, ``class_`` stands for class and ``data_code`` for data-code. True is an attribute without a value;
    False and None leave it out.

    >>> element("p", "a < b ", element("b", "&"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b <b>&amp;</b></p>'
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is not None and value is not False:
            name = name.removesuffix("_").replace("_", "-")
            parts.append(name if value is True else f'{name}="{html.escape(str(value))}"')
    return Markup(f"<{' '.join(parts)}>{joined(*content)}</{tag}>")


def picture(uri: str, alt: str) -> Markup:
    """Return an image; of all elements here, the only one without an end."""
    return Markup(element("img", src=uri, alt=alt).removesuffix("</img>"))


def joined(*content: str) -> Markup:
    """Return pieces in a row; `str` is escaped."""
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part) for part in content))
