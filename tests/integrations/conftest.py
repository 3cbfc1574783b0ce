"""What the tests of the integrations share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def fitted():
    """Return a search in scikit-learn that has run."""
    from integrations.searches import X, Y, search

    return search().fit(X, Y)
