"""Steps in time, explicit and implicit, and how long they may be."""
