"""What published numbers mean, and what a mechanism would publish."""
