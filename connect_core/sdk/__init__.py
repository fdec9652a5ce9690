"""What the author of a system sees, and nothing else: records, positions, errors, and the protocols of both ends.

    values     what is planned, read and written: positions, ranges, batches, floors, and the attempt that writes
    records    the columns of a record, its partition, its coordinates
    source     what a source does
    sink       what a sink does
    scan       what of a range is in a target already
    digest     sums over records, in whatever order they come

Imports only `connect_core.errors` and `connect_core.clock`.
"""
