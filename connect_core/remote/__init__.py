"""An installation behind a server: its API does what the use cases do, and answers in the values that these give.

The command line is the only caller. It asks here what it would ask of the use cases (`cli/installation.py`), and shows
both in the same words.
"""
