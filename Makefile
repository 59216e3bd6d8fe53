# Everything runs in a virtual environment of its own; only Python 3.11+, make and a C++ compiler are needed.
PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
INSTALLED := $(VENV)/.installed

.PHONY: help run test lint schemas test-lowest test-cuda sanitize fuzz bench docs dist clean
.DELETE_ON_ERROR:

help:
	@echo "make run          compare KFHE with other ensembles on embedded data; writes report/index.html"
	@echo "make test         the whole test suite, with linters and type checks"
	@echo "make test-lowest  the test suite with the lowest supported versions of the dependencies"
	@echo "make test-cuda    tests of the kernels on the GPU here, with CuPy installed"
	@echo "make sanitize     tests of the engine under the address and undefined-behaviour sanitizers"
	@echo "make fuzz         load 100,000 damaged and forged model files; FUZZ='count seed' for others"
	@echo "make bench        ours and other libraries, timed on the same data; BENCH=--quick for small data only"
	@echo "make docs         the documentation with its gallery in build/docs; a warning is an error"
	@echo "make dist         sdist and wheel in dist/, the wheel tried in an empty environment"
	@echo "make clean        remove all that was built"

# Compiled modules rebuild themselves when they are imported; only a change of these needs a new installation.
$(INSTALLED): pyproject.toml meson.build meson.options
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11+ is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(VENV)/bin/pip install --quiet --group dev
	$(VENV)/bin/pip install --quiet --no-build-isolation --editable ".[dask,frames,study]"
	touch $(INSTALLED)

run: $(INSTALLED)
	@echo "Compares KFHE with a random forest, LightGBM and AdaBoost when 0, 15 and 30% of the training labels are wrong."
	@echo "14 datasets that were not used to choose its settings; one to two minutes on two cores."
	@mkdir -p report
	@rm -f report/quick.sqlite*
	@$(VENV)/bin/kfhe study run quick --results report/quick.sqlite
	@$(VENV)/bin/kfhe study report report/quick.sqlite --output report

lint: $(INSTALLED) schemas
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --platform win32 src/kfhe  # knows which modules, functions and signals Windows lacks

# Files that only others read: GitHub, package indexes, citation tools. The schemas come with the two checkers.
# A hook runs this as well, so it must not install anything.
SCHEMA = $(VENV)/bin/check-jsonschema --builtin-schema
schemas:
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) custom.github-workflows-require-timeout .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff
	$(VENV)/bin/validate-pyproject pyproject.toml

test: lint
	$(VENV)/bin/python -m pytest

test-lowest: $(INSTALLED)
	rm -rf $(VENV)-lowest
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct \
	  --only-binary :all: --no-binary kfhe ".[dask,frames,study]" --group test
	$(VENV)-lowest/bin/python -m pytest tests

test-cuda: $(INSTALLED)
	KFHE_TEST_DEVICE=cuda $(VENV)/bin/python -m pytest tests/cuda

SANITIZED := tests/engine tests/property tests/test_golden.py tests/test_classifier.py tests/test_sample_weight.py \
  tests/test_tree.py tests/test_table.py tests/test_forest.py tests/test_warm_start.py tests/test_early_stopping.py \
  tests/test_threads.py tests/test_robust.py tests/test_sparse.py tests/saving

# The engine with the address and undefined-behaviour sanitizers and with every array index checked.
sanitize: $(INSTALLED)
	rm -rf $(VENV)-sanitize
	$(PYTHON) -m venv $(VENV)-sanitize
	$(VENV)-sanitize/bin/pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-sanitize/bin/pip install --quiet --group build --group test scikit-learn rich safetensors typer
	PATH="$(CURDIR)/$(VENV)-sanitize/bin:$$PATH" $(VENV)-sanitize/bin/pip install --quiet --no-build-isolation \
	  --no-deps . -Cbuild-dir=build/sanitize -Csetup-args=-Dchecks=true \
	  -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Dbuildtype=debugoptimized
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  $(VENV)-sanitize/bin/python -m pytest --quiet -p no:cacheprovider $(SANITIZED)

fuzz: $(INSTALLED)
	$(VENV)/bin/python tests/saving/fuzz_model_file.py $(FUZZ)

bench: $(INSTALLED)
	$(VENV)/bin/python -m benchmarks $(BENCH)

$(VENV)/.docs: $(INSTALLED)
	$(VENV)/bin/pip install --quiet --group docs
	touch $@

docs: $(VENV)/.docs
	rm -rf build/docs docs/gallery docs/generated
	$(VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky docs build/docs
	@echo "The documentation is in build/docs/index.html"

dist: $(INSTALLED)
	rm -rf dist $(VENV)-wheel
	$(VENV)/bin/python -m build --quiet
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/pip install --quiet "$$(echo dist/*.whl)[study]"
	cd dist && ../$(VENV)-wheel/bin/kfhe study run quick --results quick.sqlite
	cd dist && ../$(VENV)-wheel/bin/kfhe study report quick.sqlite --output ../report
	rm -f dist/quick.sqlite*
	rm -rf $(VENV)-wheel

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-wheel $(VENV)-sanitize build dist report docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
