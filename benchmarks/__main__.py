"""``python -m benchmarks``: the timings, then the other libraries. The case study has a command of its own."""

from benchmarks import accounting, peers

accounting.main()
peers.main()
