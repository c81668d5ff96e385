"""Puts TierMem's memory bank in the place of Concordia's."""

from concordia.associative_memory import basic_associative_memory

from tiermem.concordia import AssociativeMemoryBank

basic_associative_memory.AssociativeMemoryBank = AssociativeMemoryBank
