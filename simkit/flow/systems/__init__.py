"""Flows by name: a domain, equations and what to look at, made into a simulation."""
