"""A Schema Registry: schemas under numbers, by the REST API that Confluent documents.

Asked at the edges alone: by the worker for the schema of a number that it meets, by `apply` for the number of a schema
that will be written. Nothing is tried again here: a run that fails is tried again as a whole.
"""
