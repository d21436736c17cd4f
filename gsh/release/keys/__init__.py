"""Group keys: their types, their order, and their columns written from the kept rows alone."""
