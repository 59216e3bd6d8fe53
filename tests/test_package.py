"""The package as a whole."""

import subprocess
import sys
from importlib.metadata import entry_points, version
from importlib.resources import files

import pytest

import kfhe


def test_public_names_can_be_imported():
    assert set(kfhe.__all__) <= set(dir(kfhe))
    for name in kfhe.__all__:
        assert getattr(kfhe, name) is not None
    assert kfhe.KFHEClassifier.__module__ == "kfhe.classifier"
    assert kfhe.noise.flip_labels.__module__ == "kfhe.noise.labels"


def test_modules_are_attributes_of_the_package():
    assert "plotting" in dir(kfhe)
    assert kfhe.plotting.TraceDisplay.__module__ == "kfhe.plotting.training"


def test_an_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match="module 'kfhe' has no attribute 'KFHE'"):
        _ = kfhe.KFHE


def test_the_version_is_the_installed_one():
    assert kfhe.__version__ == version("kfhe")


def test_types_are_shipped():
    assert files("kfhe").joinpath("py.typed").is_file()


def test_the_command_is_installed():
    (command,) = entry_points(group="console_scripts", name="kfhe")
    assert callable(command.load())


def test_importing_the_package_loads_nothing_heavy():
    script = "import kfhe, sys; assert not {'numpy', 'sklearn', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
