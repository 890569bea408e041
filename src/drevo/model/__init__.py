"""What a robot is: links, joints, inertias, limits as checked data; files are read and written here."""
