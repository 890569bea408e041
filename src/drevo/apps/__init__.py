"""What stands on the public face as a user's own code would: loads, walking, design, streams, the command line."""
