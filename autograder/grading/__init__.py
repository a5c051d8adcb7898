"""A class run: submissions to records, records to the gradebook, feedback, grades and a table."""
