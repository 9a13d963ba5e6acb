"""Everything that may touch, visited over and over until the impulses agree."""
