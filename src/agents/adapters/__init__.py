"""Memory for agents of other frameworks: each module translates one framework's interface."""
