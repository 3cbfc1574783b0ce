"""boca inside other programs: where they ask for a search, it answers in their own words.

Each module needs its own extra, such as `pip install 'boca[sklearn]'`, and is imported by name.
"""
