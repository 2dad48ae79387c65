"""libtpu in a process of its own: what it prints is caught, its death or silence is an exception here."""
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from typing import Optional

from .. import _plugin


class CompilerMissing(RuntimeError):
    """libtpu is not installed."""


class CompilerDied(RuntimeError):
    """The compiler's process ended, or did not answer in time."""


class CompileRefused(RuntimeError):
    """The compiler said no. ``code`` is its status ("RESOURCE_EXHAUSTED", ...)."""

    def __init__(self, words: str, code: str):
        super().__init__(words)
        self.code = code


def library() -> str:
    """Path of libtpu. Raises CompilerMissing with what to do."""
    plugin = _plugin.tpu_plugin()
    if plugin is None:
        raise CompilerMissing("compiling for a TPU needs its compiler, no TPU: pip install libtpu")
    return plugin.path


def available() -> bool:
    return _plugin.tpu_plugin() is not None


_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",  # no metadata server is asked
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # no lock file is taken
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
}


class Compiler:
    """One compiler process; a new one is started when it dies. Use as a context manager. Not for several threads."""

    def __init__(self, timeout: float = 1800.0, command: Optional[list] = None):
        here = os.path.dirname(os.path.abspath(__file__))
        self.timeout = timeout
        self.command = command or [sys.executable, os.path.join(here, "_worker.py"),
                                   os.path.join(os.path.dirname(here), "libtorchtpu.so"), library()]
        self.folder = tempfile.mkdtemp(prefix="torch-tpu-aot-")
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stop(self):
        p, self.process = self.process, None
        if p is None:
            return
        p.kill()
        p.wait()
        self.reader.join()  # it has seen the end of the pipe
        p.stdin.close()
        p.stdout.close()
        self.noise.close()

    def _start(self):
        env = {**os.environ, **_ENVIRONMENT}
        self.noise = open(os.path.join(self.folder, "stderr"), "w+b")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.noise,
                                        env=env, cwd=self.folder, start_new_session=True)
        answers, out = queue.Queue(), self.process.stdout

        def read():
            for line in out:
                answers.put(line)
            answers.put(b"")

        self.answers = answers
        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()

    def _ask(self, job: dict) -> dict:
        if self.process is None:
            self._start()
        line = b""
        try:
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
            line = self.answers.get(timeout=self.timeout)
        except BrokenPipeError:
            pass
        except queue.Empty:
            self._stop()
            raise CompilerDied(f"the TPU compiler did not answer within {self.timeout:g} s and was stopped") from None
        if not line:
            status = self.process.wait()
            self.noise.seek(0)
            said = self.noise.read().decode(errors="replace").strip()[-2000:]
            self._stop()
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            raise CompilerDied(f"the TPU compiler's process {how}" + (f"; its last words:\n{said}" if said else ""))
        answer = json.loads(line)
        if "error" in answer:
            raise CompileRefused(answer["error"], answer.get("code", ""))
        return answer

    def topology(self, name: str) -> dict:
        """``{"devices", "kind", "version"}`` of a topology. Raises CompileRefused for a name the compiler does not know."""
        return self._ask({"topology": name})

    def compile(self, text: str, topology: str, partitions: int = 1, flags: str = "", optimized: bool = True,
                executable: Optional[str] = None, replicas: int = 1, cache: Optional[str] = None) -> dict:
        """Compiles StableHLO for |replicas| x |partitions| devices of |topology|. Gives ``memory`` (bytes by kind), ``costs`` (the compiler's estimates),
        |cache|: a folder of executables in which a device of that kind looks for the program. ``seconds`` it took, ``devices``, ``kind``, ``version``, and ``hlo``, the optimised program's protobuf."""
        path, program = os.path.join(self.folder, "text"), os.path.join(self.folder, "optimized")
        with open(path, "w") as f:
            f.write(text)
        answer = self._ask({"topology": topology, "text": path, "partitions": partitions, "replicas": replicas, "flags": flags,
                            "optimized": program if optimized else None, "executable": executable, "cache": cache})
        if optimized:
            with open(program, "rb") as f:
                answer["hlo"] = f.read()
        return answer
