"""One runnable module per question: ``python -m benchmarks.<name>`` prints its tables."""
