"""What is wrong with an installation or a bank."""
