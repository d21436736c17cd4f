"""Imported once by the process that worker processes are forked from: what takes long to prepare is prepared here."""

import gc

from app.release import quantiles

__all__: list[str] = []

quantiles.table()
# Objects made until now live as long as the process. The collector need not visit them after every task.
gc.collect()
gc.freeze()
