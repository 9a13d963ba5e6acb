"""Collision detection: contact points, normals and gaps for every pair of shapes."""
