"""Raw events to a table of groups: what a plan means, for every engine. No engine is loaded here.

plan.py         what to count, and the bounds on one user
kinds.py        the types of columns that every engine has
dialects.py     how each SQL dialect spells what the lots and the bounds need
lots.py         the order in which a user's groups are kept
bounding.py     the bounding query
folders.py      columns that folders name, such as day=2026-11-16, and their clashes
query_text.py   the same query for people, with comments
target.py       the noise: calibrated to a target or to a share of a budget, or given
payer.py        who pays: a budget of the service, or nobody
streams.py      random bits from a seed, for engines that compute twice
output.py       the file of a private table: whole or not at all
published.py    what publishing gives, and what it says meanwhile
demo.py         made-up events
"""
