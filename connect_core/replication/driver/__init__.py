"""The driver's side of a run: `run.run_connector` runs all tasks of a connector, `task.TaskRun` one of them from lease
to settle, `preview.plan_connector` says what the next run would move.
"""
