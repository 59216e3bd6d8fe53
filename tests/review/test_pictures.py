"""Pictures on a page: small, and only those of the folder that is meant."""

import base64
import io

import pytest
from PIL import Image

from kfhe.review.pictures import SIDE, embedded


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "table"
    (folder / "cats").mkdir(parents=True)
    Image.new("RGB", (1000, 500), "red").save(folder / "cats" / "tom.png")
    Image.new("RGBA", (10, 10), (0, 0, 0, 0)).save(folder / "clear.png")
    Image.new("RGB", (10, 10)).save(tmp_path / "secret.png")
    (folder / "text.png").write_text("no picture")
    return folder


def opened(url):
    head, _, content = url.partition(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_a_picture_is_scaled_down(folder):
    picture = opened(embedded("cats/tom.png", folder))
    assert picture.size == (SIDE, SIDE // 2)
    assert picture.getpixel((5, 5))[0] > 240


def test_what_is_transparent_is_white(folder):
    assert min(opened(embedded("clear.png", folder)).getpixel((5, 5))) > 240


@pytest.mark.parametrize("name", ["text.png", "none.png", "cats", "", "x\0.png", "../secret.png"])
def test_what_is_no_picture_of_the_folder_is_not_shown(folder, name):
    assert embedded(name, folder) is None


@pytest.mark.posix
def test_neither_whole_paths_nor_links_lead_out(folder):
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    assert embedded("link.png", folder) is None
    assert embedded(str(folder.parent / "secret.png"), folder) is None
    assert embedded(str(folder / "clear.png"), folder) is not None


@pytest.mark.parametrize("most", [50, 80], ids=["more than twice as large", "just too large"])
def test_a_picture_that_would_fill_the_memory_is_not_shown(folder, monkeypatch, most):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    assert embedded("clear.png", folder) is None


def test_a_broken_picture_is_not_shown(folder):
    path = folder / "broken.png"
    Image.effect_noise((400, 400), 90).save(path)
    whole = path.read_bytes()
    second = whole.index(b"IDAT", whole.index(b"IDAT") + 4)
    path.write_bytes(whole[:second] + b"ID\0T" + whole[second + 4 :])
    assert embedded("broken.png", folder) is None
