"""Shared by the tests of the Python side: a cache of executables for the session, few threads, and small helpers."""
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
_made = None
if "TORCH_TPU_CACHE_DIR" not in os.environ:
    _made = os.environ["TORCH_TPU_CACHE_DIR"] = tempfile.mkdtemp(prefix="torch-tpu-test-")

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; runs with --slow")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        skip = pytest.mark.skip(reason="slow: give --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


def pytest_unconfigure(config):
    if _made:
        shutil.rmtree(_made, ignore_errors=True)


@pytest.fixture(autouse=True)
def _clean():
    """Each test starts with the same seeds, and ends with no failure waiting and the mode as it was."""
    torch.manual_seed(0)
    mode = torch.tpu.eager_mode()
    yield
    torch.tpu.set_eager_mode(mode)
    torch.tpu.synchronize()


@pytest.fixture
def python():
    """Runs a program in a process of its own; gives its stdout. A status other than 0 fails the test."""

    def run(code, timeout=180, check=True, **env):
        full = {**os.environ, **{k: str(v) for k, v in env.items() if v is not None}}
        for name in [k for k, v in env.items() if v is None]:
            full.pop(name, None)
        p = subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, timeout=timeout, cwd=HERE)
        if check:
            assert p.returncode == 0, f"status {p.returncode}\n{p.stdout}\n{p.stderr}"
            return p.stdout
        return p

    return run
