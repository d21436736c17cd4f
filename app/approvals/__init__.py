"""/approvals: requests that wait for a second access key."""
