import os
import stat
import threading

import pytest

from kfhe.files import whole_file, write_whole


def test_text_and_bytes_are_written_and_folders_made(tmp_path):
    write_whole(tmp_path / "new" / "folder" / "text", "é")
    write_whole(str(tmp_path / "bytes"), b"\x00\xff")
    assert (tmp_path / "new" / "folder" / "text").read_bytes() == "é".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"


def test_a_name_may_be_as_long_as_the_system_takes_it(tmp_path):
    path = tmp_path / ("é" * 125 + ".text")
    write_whole(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step, full)
    with pytest.raises(OSError, match=r"file: can't be written: No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_ctrl_c_once_the_file_is_there_stays_ctrl_c(tmp_path, monkeypatch):
    replace = os.replace

    def interrupted(*arguments):
        replace(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_of_several_that_write_the_same_file_at_once_one_is_there_as_a_whole(tmp_path):
    contents = [bytes([mark]) * 200_000 for mark in range(8)]
    started = threading.Barrier(len(contents))

    def write(content):
        with whole_file(tmp_path / "file") as file:
            started.wait()
            for part in range(0, len(content), 1000):
                file.write(content[part : part + 1000])

    threads = [threading.Thread(target=write, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["chmod", "replace"])
def test_a_file_is_closed_before_it_takes_its_place(tmp_path, monkeypatch, step):
    closed = []  # Windows refuses to move an open file
    original = getattr(os, step)
    with whole_file(tmp_path / "file") as file:
        monkeypatch.setattr(os, step, lambda *arguments: (closed.append(file.closed), original(*arguments)))
    assert closed == [True]


@pytest.mark.posix
def test_others_may_read_what_the_umask_allows(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.posix
def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.posix
def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=write_whole, args=(tmp_path / "pipe", b"new"))
    writer.start()
    assert (tmp_path / "pipe").read_bytes() == b"new"
    writer.join()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.posix
def test_a_folder_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder: can't be written: Is a directory"):
        write_whole(tmp_path / "folder", b"")
    assert os.listdir(tmp_path) == ["folder"]
