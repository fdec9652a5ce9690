"""Files of lines: read as logs that grow, are rotated or cut; written as one growing file per task."""
