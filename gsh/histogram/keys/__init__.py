"""Group keys: their types, their order, and their columns in an answer, written from the kept rows alone."""
