"""What tests of the pipeline may ask for."""

from collections.abc import Iterator

import pytest

from plain_encoder import PlainEncoder
from voxrisk.attack import encoders


@pytest.fixture(scope="module")
def plain_encoder() -> Iterator[str]:
    """The name of an encoder that costs nothing, for tests that are not about encoders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(encoders.ENCODERS, "plain", PlainEncoder)
        yield "plain"
