"""Reference implementations, one module a topic: short, and what answers are judged by."""
