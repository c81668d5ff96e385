"""What a population knows: tables that are made of a journal, column by column."""
