"""Encrypted pages, and single modules: frames of any length, changed bytes, other keys and places."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz_input import check, number, own, refused, split
from fuzz_pages import Question

from pyparq import kernels
from pyparq.encryption.cipher import ChunkAad, DataKey, Module
from pyparq.encryption.reading import _Encrypted as EncryptedChunk
from pyparq.errors import ParquetError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize

_SIZES = (16, 24, 32)
_KEYS = tuple(bytes(range(size)) for size in _SIZES)
_AAD = ChunkAad(b"the file", 0, 3)
_MOST_PAGES = 20


def sealed(data: Any) -> None:
    """Pages that are encrypted one by one. Some bytes are changed then: sizes of frames, nonces, text and tags."""
    head, stored = split(data)
    asked = Question(head, stored)
    key, ctr = DataKey(_KEYS[head[20] % 3]), bool(head[20] & 4)
    whole = bytearray(_sealed(bytes(stored), key, ctr, bool(head[20] & 8)))
    for place in range(head[21] % 4 if whole else 0):
        whole[number(head, 12 + 2 * place) % len(whole)] = head[22 + place % 2]
    asked.stored = own(whole)
    asked.cipher = EncryptedChunk(key, b"the file", ctr, 0, 3).of_pages()
    try:
        found = asked.decoded("values")
    except ParquetError:
        return  # what is not as usual goes by Python, whose errors have their types
    if head[21] % 4 == 0 and found is not None:
        asked.stored, asked.cipher = stored, None
        clear = asked.decoded("values")
        same = clear is not None and (clear.length, clear.null_count) == (found.length, found.null_count)
        check(same and bytes(clear.values) == bytes(found.values), "another column in the clear")


def _sealed(stored: bytes, key: DataKey, ctr: bool, levels_clear: bool) -> bytes:
    """Each page as two modules. What is no page stays as it is."""
    at, ordinal, made = 0, 0, []
    while at < len(stored) and ordinal < _MOST_PAGES:
        try:
            header, end = deserialize(tt.PageHeader, stored, at)
        except (ParquetError, ValueError):
            break
        body = stored[end : end + max(header.compressed_page_size, 0)]
        is_dictionary = header.dictionary_page_header is not None
        modules = (Module.DICTIONARY_PAGE_HEADER, Module.DICTIONARY_PAGE) if is_dictionary else (
            Module.DATA_PAGE_HEADER, Module.DATA_PAGE)  # fmt: skip
        page = -1 if is_dictionary else ordinal
        made.append(bytes(key.seal([stored[at:end]], _AAD.of(modules[0], page))))
        v2 = header.data_page_header_v2
        clear = 0 if v2 is None or not levels_clear else max(
            v2.definition_levels_byte_length + v2.repetition_levels_byte_length, 0)  # fmt: skip
        text = body[clear:]
        made.append(body[:clear])
        made.append(bytes(key.seal_ctr([text]) if ctr else key.seal([text], _AAD.of(modules[1], page))))
        at, ordinal = end + len(body), ordinal + (not is_dictionary)
    return b"".join(made) + stored[at:]


def modules(data: Any) -> None:
    """One module: it comes back, and no change of it does."""
    head, stored = split(data)
    key = kernels.AesKey(_KEYS[head[0] % 3])
    nonce, aad, text = head[1:13], head[13 : 13 + head[23] % 8], own(stored)
    made = own(key.encrypt(nonce, text, aad))
    check(len(made) == len(text) + 16, "another size")
    check(key.decrypt(nonce, made, aad) == text.tobytes(), "another text")
    out = np.empty(len(text), np.uint8)
    key.run_ctr(nonce, text, out)
    back = np.empty(len(text), np.uint8)
    key.run_ctr(nonce, out, back)
    check(bool((back == text).all()), "another text by CTR")
    made[number(head, 20) % len(made)] ^= 1 + head[22] % 255
    for wrong in (made, own(stored), own(stored[: head[22] % 40])):
        with refused:
            key.decrypt(nonce, wrong, aad)
            check(False, "a changed module is opened")
    with refused:
        key.decrypt_into(nonce, own(stored), None, np.empty(max(len(stored) - 16, 0), np.uint8))
        check(False, "text is opened")
