"""What a tool answered, or how it refused."""

from __future__ import annotations

import json


def content(result):
    """Return what a tool answered: a list is wrapped in a mapping by the protocol."""
    assert not result.is_error, result.content[0].text
    answer = result.structured_content
    assert json.loads(json.dumps(answer)) == answer
    return answer["result"] if set(answer) == {"result"} else answer


def refused(result):
    assert result.is_error, result.structured_content
    return result.content[0].text
