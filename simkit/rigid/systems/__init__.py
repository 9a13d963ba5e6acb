"""Systems of rigid bodies, ready to run."""
