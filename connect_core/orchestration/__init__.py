"""What is asked of Airflow from outside, over HTTP: pause, start, stop and delete. Imports no airflow.

`rest` is the client, `control` what it is used for, `names` how things are called there. The DAGs and all else that
works inside Airflow is in `connect_core.airflow`.
"""
