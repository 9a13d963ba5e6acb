"""Longer tests of files."""

import numpy as np
import pytest

from simkit.storage.files import DamagedFileError, read_arrays, write_arrays


def test_every_flipped_bit_is_detected(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, {"segment": np.asarray(3), "state.x": np.arange(3.0)})
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(DamagedFileError):
            read_arrays(path)
