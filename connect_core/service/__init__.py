"""One function a use case: what the command line, Airflow and other edges do, without their words and forms.

Plain values go in and come out: a result is a dict of the JSON that `waybill … --json` prints, with times as datetimes
and payloads as bytes (`json_values` has their form). Errors are those of `connect_core.errors`. Nothing here prints,
asks or ends a process: whoever may be asked is a function given, as is whoever is told of progress and notices.

An edge opens what a function works on (`opened`), calls it, and shows what comes out. `opened`, `streams` and
`json_values` import nothing heavy; the other modules are imported when a command runs.
"""
