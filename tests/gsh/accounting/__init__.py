"""The accounting core, held to four kinds of promise: the reference, inverses, monotonicity and limits, rejections."""
