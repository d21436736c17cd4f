"""Raw events to a table of groups: what a plan means, for every engine. No engine is loaded here.

plan.py         what to count, and the bounds on one user
tables.py       the plan of several tables that are published together
public_keys.py  lists of public group keys, and their digests
plan_file.py    the file of a publication of several tables: TOML or JSON; and one to start from
kinds.py        the types of columns that every engine has
dialects.py     how each SQL dialect spells what the lots and the bounds need
lots.py         the order in which a user's groups are kept
bounding.py     the bounding query, also as a text for people
folders.py      columns that folders name, such as day=2026-11-16, and their clashes
choosing.py     C_u and clips, from a noisy histogram over users
terms.py        the noise: calibrated to a target or to a share of a budget, or given; and who pays
output.py       the file of a private table: whole or not at all
folder_output.py  the folder of several private tables: whole or not at all
own_files.py    files of their owner alone, such as seeds
surveys/        bounds that a survey chooses
published.py    the result of publishing, and reports of progress
demo.py         made-up events
"""
