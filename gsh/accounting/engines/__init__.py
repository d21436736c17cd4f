"""The privacy of sparse histograms of other engines: other noises, and other tests.  [docs/math/engines.md]"""
