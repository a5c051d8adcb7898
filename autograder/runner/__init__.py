"""Running answers in processes of their own, and judging them from outside."""
