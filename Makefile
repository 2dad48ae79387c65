# make demo   sets up .venv, builds, and runs a real pretrained model on device="tpu"
# make test   sets up .venv, builds, and passes all tests
# Contributors: ./dev help
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.stamp

.PHONY: all demo test build setup clean
all: build

setup: $(STAMP)/base
$(STAMP)/base: tools/setup.sh tools/requirements.txt
	sh tools/setup.sh "$(PYTHON)" "$(VENV)"
	@mkdir -p $(STAMP) && touch $@

build: $(STAMP)/base
	./dev build

demo: build
	sh tools/setup.sh --models "$(PYTHON)" "$(VENV)"
	$(PY) examples/demo.py

test: build
	sh tools/setup.sh --test "$(PYTHON)" "$(VENV)"
	./dev test

clean:
	rm -rf build dist
