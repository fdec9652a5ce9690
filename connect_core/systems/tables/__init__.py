"""What tables of every database have in common: no system of its own."""
