"""What happens to records between read and write: batch -> batch, no I/O, no clock, no chance.

Today records pass as bytes, are left out by a filter, and rules say where they go. Converters and transforms have their
place here: each is one more step of `Pipeline.shape`, and the digest of a pipeline changes with its document and code.

`shaping`, `choosing`, `rules`, `conditions` and `fields` work on columns. What a document is checked with (`sql`,
`templates`, `references`, `digest`) loads no Arrow.
"""
