"""Runs of connectors; puts the other rooms together. Imports nothing itself: workers load `lane` alone.

`run.run_connector` runs all tasks of a connector, `task.TaskRun` one of them from lease to settle,
`preview.plan_connector` says what the next run would move, `lane.work` is what a worker does.
"""
