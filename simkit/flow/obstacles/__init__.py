"""Bodies in a flow: their shapes, how they hold the flow, and what the flow does to them."""
