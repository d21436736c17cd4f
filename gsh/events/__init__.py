"""Raw events to a table of groups: what a plan means, for every engine. No engine is loaded here.

plan.py       what to count, and the bounds on one user
kinds.py      the types of columns that every engine has
dialects.py   how each SQL dialect spells what the lots and the bounds need
lots.py       the order in which a user's groups are kept
bounding.py   the bounding query
"""
