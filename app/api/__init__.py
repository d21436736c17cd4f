"""The HTTP contract: schemas, errors, and one router per resource."""
