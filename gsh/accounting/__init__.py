"""The accounting core: pure functions of the mechanism, with certified results."""
