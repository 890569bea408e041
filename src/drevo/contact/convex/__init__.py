"""Distances and places of contact of convex solids without a rule of their own."""
