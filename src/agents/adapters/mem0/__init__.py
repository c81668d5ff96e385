"""The interface of mem0's ``Memory``: its calls, results and errors, translated to a bank's."""
