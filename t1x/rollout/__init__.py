"""One trial from lease to reward, and which trials make a batch."""
