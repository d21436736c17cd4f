"""The functions and classes behind ``import gsh``: Python and numpy values in, frozen results out."""
