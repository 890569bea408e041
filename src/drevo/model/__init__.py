"""The description of a robot: links, joints, inertias, limits as checked data; files are read and written here."""
