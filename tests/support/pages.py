"""Small pages of HTML, read by the tests of what a notebook shows."""

from __future__ import annotations

from html.parser import HTMLParser

from support.trials import made as trial_of

EVIL = "<script>alert('x')</script>&\"'"


def trial(number=0, **more):
    values = {"x": {"a": 0.25}, "z": {"n": 3}, "cost": 2.0, "why": {"reason": "Because.", "phase": "start"}}
    return trial_of(**({"number": number, "state": "complete", "value": 1.5} | values | more))


class Page(HTMLParser):
    """Collect tags and text, and see that what opens is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.rows, self.open = [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open[-1:] and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)

    @property
    def text(self):
        return " ".join(self.words)


def shown(thing):
    return Page(thing._repr_html_())
