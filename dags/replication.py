"""The DAGs of this Waybill installation, one for each connector of the ledger (airflow dag)."""

from connect_core.airflow import register

register(globals())
