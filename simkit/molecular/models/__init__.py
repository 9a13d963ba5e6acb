"""What acts between the particles of a system, with parameters and units that several share."""
