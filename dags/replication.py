"""The DAGs of this Waybill installation, one for each connector of the ledger (airflow dag)."""

from connect_core.orchestration import register

register(globals())
