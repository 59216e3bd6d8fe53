"""Pictures that a column names by their files: scaled down, as text that a page can hold."""

from __future__ import annotations

import base64
import io
import warnings
from pathlib import Path

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
SIDE = 320  # pixels, at most
QUALITY = 80  # of JPEG


def embedded(name: str, folder: Path) -> str | None:
    """Return a picture as a data URL; None if there is none that can be shown.

    A table may come from anywhere, and its page may be passed on: so a name that leads out of the folder
    shows nothing, be it by .., by a link or as a whole path.

    Parameters
    ----------
    name : str
        The file's name, relative to the folder.
    folder : path
        Where pictures may be taken from.
    """
    from PIL import Image

    home = folder.resolve()
    try:
        path = (home / name).resolve()
        if not (path.is_relative_to(home) and path.is_file()):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as picture:
                picture.draft("RGB", (SIDE, SIDE))  # what is large is not even unpacked, if it is a JPEG
                picture.thumbnail((SIDE, SIDE))
                small = Image.new("RGB", picture.size, "white")  # behind what is transparent
                whole = picture.convert("RGBA")
                small.paste(whole, mask=whole)
    except Exception:  # Pillow tells of a broken file by whatever it stumbles on, a SyntaxError for one
        return None
    content = io.BytesIO()
    small.save(content, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
