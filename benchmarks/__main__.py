"""``python -m benchmarks``: all tables but the case study's, which has a command of its own."""

from benchmarks import accounting, http, peers, release

accounting.main()
http.main()
peers.main()
release.main()
