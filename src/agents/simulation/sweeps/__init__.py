"""Many runs over a grid or ranges of settings; fits to data."""
