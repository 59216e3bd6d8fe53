"""Pictures in the table, scaled down and embedded in the page."""

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
    """Return a picture as a data URL; None if it can't be shown.

    Tables are not trusted, and pages may be passed on. So a name that leads out of the folder, by .., a link
    or an absolute path, shows nothing.

    Parameters
    ----------
    name : str
        The file's name, relative to the folder.
    folder : path
        The folder of pictures.
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
                picture.draft("RGB", (SIDE, SIDE))  # large JPEGs are decoded at a smaller size
                picture.thumbnail((SIDE, SIDE))
                small = Image.new("RGB", picture.size, "white")  # background of transparent pictures
                whole = picture.convert("RGBA")
                small.paste(whole, mask=whole)
    except Exception:  # Pillow raises many types for damaged files, such as SyntaxError
        return None
    content = io.BytesIO()
    small.save(content, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
