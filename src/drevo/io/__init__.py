"""Files: XML with the place of each element, installed packages, saving."""
