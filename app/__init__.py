"""The service: the library over HTTP, with budgets, stored releases, access keys and pages."""
