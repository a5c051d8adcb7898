"""From what authors write to what students get: cases, releases, the student side in one file."""
