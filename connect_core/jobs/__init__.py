"""What spark-submit runs. A package of its own, since its folder is put in front of the path of whatever runs in it."""
