"""The worker's side of a run: `lane.work` moves the ranges of a lane. Knows neither ledger nor driver."""
