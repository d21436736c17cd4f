"""A survey before a publication: noisy histograms over the users, from which C_u and clips are chosen.

asked.py        which bounds a call leaves to a survey, and the public defaults in their place
histograms.py   what is counted: one row of bins per user, in SQL; the same for every engine
choices.py      the noise of the bins from a seed, and the bounds that follow from the noisy numbers
alone.py        a survey that is released by itself
keeping.py      who keeps the seed, and what was drawn, until the publication is done: the service, or a file
charts.py       a survey as a chart: text for the terminal, and a page
"""
