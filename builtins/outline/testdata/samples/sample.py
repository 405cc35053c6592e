#!/usr/bin/env python3
"""Module docstring."""
from __future__ import annotations
import os, sys as system
from typing import Any, \
    Dict
from . import sibling

try:
    import fast
except* ImportError:
    fast = None

type Pair[T] = tuple[T, T]


# Kept in a box.
class Box[T: (int, str)]:
    """A box.

    It holds things.
    """

    size: int = 0

    def __init__(self, *, size: int = 0, /) -> None: ...

    @property
    def area(self) -> int:
        'The area.'
        return self.size ** 2

    class Inner:
        async def run(self): pass


@decorator(x=1)
# about f
async def f[T](x: T, /, *args, **kw) -> T:
    r"""Doc of f."""
    def hidden(): pass
    match x:
        case {"a": [1, *rest]} if rest:
            return (y := x)
        case _:
            return f"{x!r:>{10}}"


if __name__ == "__main__":
    def main(): pass

lambda x: x
