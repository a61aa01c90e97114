"""The websocket of a page: one connection, any number of subscriptions."""
