"""boca inside other libraries, by their own interfaces for a search.

Each module needs its own extra, such as `pip install 'boca[sklearn]'`, and is imported by name.
"""
