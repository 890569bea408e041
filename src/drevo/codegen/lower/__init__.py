"""Programs as steps of a machine without registers: fused, paired, in the order of execution."""
