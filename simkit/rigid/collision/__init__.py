"""Where bodies touch: points, normals and gaps, for every pair of shapes."""
