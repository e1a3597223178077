"""What two texts begin with alike."""


def common_prefix(a: str, b: str) -> int:
    """How many characters two texts have in common at their beginning; by halves, since texts are compared fast as wholes."""
    same, most = 0, min(len(a), len(b))
    while same < most:
        middle = (same + most + 1) // 2
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same
