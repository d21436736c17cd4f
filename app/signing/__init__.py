"""The signing key of the service: private keys in files, public ones in the ledger. No HTTP."""
