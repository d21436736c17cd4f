"""What requests and answers share: numbers, names, mechanisms, columns and costs as JSON."""
