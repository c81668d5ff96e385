"""Tables as data frames of pandas or, where that is not installed, of polars."""

import importlib.util
from typing import Any

from ...packages import missing


def frame(parquet: bytes) -> Any:
    """The data frame of a Parquet file's bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # From bytes, and without threads: with them, some processes were aborted at their end.
    with pq.ParquetFile(pa.BufferReader(parquet)) as file:
        table = file.read(use_threads=False)
    if importlib.util.find_spec("pandas") is not None:
        return table.to_pandas(use_threads=False)
    if importlib.util.find_spec("polars") is not None:
        import polars

        return polars.from_arrow(table)
    raise missing("a data frame", "pandas", otherwise="; polars does as well")
