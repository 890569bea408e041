"""Documents: equations in the languages that people and other programs read, pictures, pages."""
