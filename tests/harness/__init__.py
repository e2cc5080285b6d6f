"""The real programs and a real store on this machine, for the demo, benchmarks and tests."""
