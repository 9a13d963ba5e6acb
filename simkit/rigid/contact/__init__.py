"""What happens where bodies touch: impacts, rest, friction."""
