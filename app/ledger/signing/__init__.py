"""The keys that sign for the service: private ones in files, public ones in the ledger."""
