"""What one demo is enough for: the tests of this package share it, and its stack."""
