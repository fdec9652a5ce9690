"""Steps over rows with fields and types: what a document's `transforms` say, and how they work on columns. Pure.

`steps` and what it imports are light: documents are checked by them. `running` and the rest need Arrow.
"""
