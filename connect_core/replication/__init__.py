"""Runs of connectors; puts the other rooms together. `driver` plans and settles, `worker` moves the records of a lane,
`backfill` begins and follows backfills and replays. Workers load `worker.lane` alone: nothing is imported here.
"""
