"""Tables of which CI runs a few rows, and script/full all."""

import pytest


def sampled(rows, *kept) -> list:
    """The rows for `parametrize`: those in `kept` run always, the others in script/full only."""
    return [row if row in kept else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.full)
            for row in rows]
