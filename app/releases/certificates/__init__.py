"""The forms of a certificate for readers without this code: an entry for a registry, a page to print."""
