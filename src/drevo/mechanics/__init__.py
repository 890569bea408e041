"""Trees of bodies over any scalar: joints, spatial vectors, algorithms, and the formalisms of books and papers."""
