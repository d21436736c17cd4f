"""``python -m benchmarks``: all tables but the case study's, which has a command of its own."""

from benchmarks import accounting, http, ledger, noise, peers, release

accounting.main()
http.main()
noise.main()
peers.main()
release.main()
ledger.main()
