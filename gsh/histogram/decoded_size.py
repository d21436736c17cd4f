"""How much memory a batch takes once its columns are decoded, together with what its arrays take themselves.

A few bytes can encode a long column: views of one text. Only dictionaries stay encoded.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gsh.histogram.keys.types import is_text

__all__ = ["decoded_size"]

# What an array of no rows takes, in bytes.
_ARRAY = 512
_LONGEST_NUMBER = 32


def decoded_size(batch: pa.RecordBatch) -> int:
    """An upper bound, computed without decoding anything. The buffers must have the sizes that the batch needs."""
    encoded = (place for place, field in enumerate(batch.schema) if _is_encoded(field.type))
    arrays: int = max(batch.nbytes, _ARRAY * batch.num_columns)
    return arrays + sum(_decoded(batch.column(place)) for place in encoded)


def _is_encoded(kind: pa.DataType) -> bool:
    return bool(isinstance(kind, pa.BaseExtensionType) or _is_view(kind))


def _is_view(kind: pa.DataType) -> bool:
    return bool(kind in (pa.string_view(), pa.binary_view()))


def _decoded(column: pa.Array) -> int:
    """The bytes of the decoded column, or 0 if it is not encoded."""
    if isinstance(column.type, pa.BaseExtensionType):
        return _decoded(column.storage)
    return int(_lengths(column).sum()) if _is_view(column.type) else 0


def _lengths(values: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The bytes of each value."""
    if not is_text(values.type):
        return np.full(len(values), _LONGEST_NUMBER, np.int64)
    if not _is_view(values.type):
        return np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(), np.int64)
    # A view begins with its length. Arrow has no function for it. Under a null it may be anything.
    views = np.frombuffer(values.buffers()[1], np.int32).reshape(-1, 4)[values.offset :][: len(values)]
    return np.where(values.is_valid().to_numpy(zero_copy_only=False), np.maximum(views[:, 0], 0), 0).astype(np.int64)
