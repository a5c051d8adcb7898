"""Reference implementations, one module a topic: short, exemplary, and what every answer is judged by."""
