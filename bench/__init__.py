"""What `make bench` runs: ratios within one run, each with the mark it has to meet."""
