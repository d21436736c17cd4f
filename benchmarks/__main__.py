"""``python -m benchmarks``: all tables but the case study's, which has a command of its own."""

from benchmarks import accounting, coverage, http, joint_tables, ledger, library, noise, peers, publish, release

accounting.main()
joint_tables.main()
library.main()
http.main()
noise.main()
coverage.main()
peers.main()
release.main()
publish.main()
ledger.main()
