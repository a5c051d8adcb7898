"""From what authors write to what students get: cases, releases, and the student side in one file."""
