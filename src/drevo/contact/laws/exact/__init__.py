"""Signorini's and Coulomb's laws of contact, in Moreau's time stepping."""
