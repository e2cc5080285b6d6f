"""The figures that the project promises, each measured beside its peer: `./dev bench`."""
