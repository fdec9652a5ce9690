"""What spark-submit runs, and the process of an operation of the server. A package of its own, since its folder is put
in front of the path of whatever runs in it."""
