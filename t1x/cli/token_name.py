"""How a single token is called."""

import json

from t1x.text.visible import legible


def token_name(data: bytes) -> str:
    """`" print"`, or `bytes 0xE2 0x80` for what alone is no text."""
    try:
        return json.dumps(legible(data.decode()), ensure_ascii=False)
    except UnicodeDecodeError:
        return f"byte{'s' * (len(data) > 1)} {' '.join(f'0x{byte:02X}' for byte in data)}"
