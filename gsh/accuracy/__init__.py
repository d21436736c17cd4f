"""What a published number means: intervals and totals, from the published numbers and the mechanism alone."""
