"""The compiler's process: reads jobs from stdin, a JSON object a line, and answers each with one on stdout.

Run as a script, not as a module: it needs neither PyTorch nor the rest of the package, only the C library, and starts
in a moment. libtpu may print, wait or die here; its parent notices.

    argv: LIBTORCHTPU LIBTPU
    job:    {"topology", "text": file, "replicas", "partitions", "flags", "optimized": file or null, "executable": file or null, "cache": folder or null}
    answer: {"devices", "kind", "version", "memory": {...}, "costs": {...}, "format", "seconds"} or
            {"error": words, "code": name}
"""
import ctypes as C
import json
import os
import sys
import time

P = C.c_void_p
MEMORY = ("code", "arguments", "outputs", "aliased", "temporaries", "peak")
EACH = C.CFUNCTYPE(None, P, C.c_char_p, C.c_double)


class Refused(Exception):
    def __init__(self, code, words):
        super().__init__(words)
        self.code = code


def bind(path):
    lib = C.CDLL(path)
    for name, result, args in (
        ("tt_aot_open", P, [C.c_char_p, C.c_char_p, C.POINTER(P)]),
        ("tt_aot_devices", C.c_int, [P]),
        ("tt_aot_device_kind", C.c_char_p, [P]),
        ("tt_aot_platform_version", C.c_char_p, [P]),
        ("tt_aot_compile", P, [P, C.c_char_p, C.c_size_t, C.c_char_p, C.c_int, C.c_int, C.POINTER(P)]),
        ("tt_aot_program_free", None, [P]),
        ("tt_aot_memory", P, [P, C.POINTER(C.c_int64 * len(MEMORY))]),
        ("tt_aot_costs", P, [P, EACH, P]),
        ("tt_aot_optimized", P, [P, C.c_char_p, C.POINTER(P), C.POINTER(C.c_size_t)]),
        ("tt_aot_serialize", P, [P, C.POINTER(P), C.POINTER(C.c_size_t)]),
        ("tt_aot_store", P, [P, P, C.c_char_p, C.c_size_t, C.c_char_p, C.c_int, C.c_char_p]),
        ("tt_aot_bytes_free", None, [P]),
        ("tt_status_code", C.c_int, [P]),
        ("tt_status_message", C.c_char_p, [P]),
        ("tt_status_free", None, [P]),
        ("tt_code_name", C.c_char_p, [C.c_int]),
    ):
        f = getattr(lib, name)
        f.restype, f.argtypes = result, args
    return lib


class Compiler:
    def __init__(self, library, plugin):
        self.lib, self.plugin, self.open = bind(library), plugin, {}

    def ok(self, status):
        if not status:
            return
        code = self.lib.tt_code_name(self.lib.tt_status_code(status)).decode()
        words = self.lib.tt_status_message(status).decode(errors="replace")
        self.lib.tt_status_free(status)
        raise Refused(code, words)

    def topology(self, name):
        if name not in self.open:
            aot = P()
            self.ok(self.lib.tt_aot_open(self.plugin.encode(), name.encode(), C.byref(aot)))
            self.open[name] = aot
        return self.open[name]

    def save(self, function, path, program, *first):
        data, size = P(), C.c_size_t()
        self.ok(function(program, *first, C.byref(data), C.byref(size)))
        try:
            with open(path, "wb") as f:
                f.write(C.string_at(data, size.value))
        finally:
            self.lib.tt_aot_bytes_free(data)

    def compile(self, job):
        lib, aot = self.lib, self.topology(job["topology"])
        out = {"devices": lib.tt_aot_devices(aot), "kind": lib.tt_aot_device_kind(aot).decode(errors="replace"),
               "version": lib.tt_aot_platform_version(aot).decode(errors="replace")}
        if not job.get("text"):
            return out
        with open(job["text"], "rb") as f:
            text = f.read()
        program, start = P(), time.monotonic()
        flags = (job.get("flags") or "").encode() or None
        try:
            self.ok(lib.tt_aot_compile(aot, text, len(text), flags, job.get("replicas", 1), job.get("partitions", 1), C.byref(program)))
            out["seconds"] = time.monotonic() - start
            sizes = (C.c_int64 * len(MEMORY))()
            self.ok(lib.tt_aot_memory(program, C.byref(sizes)))
            out["memory"] = {k: v for k, v in zip(MEMORY, sizes) if v >= 0}
            costs = out["costs"] = {}
            each = EACH(lambda _, name, value: costs.__setitem__(name.decode(errors="replace"), value))
            self.ok(lib.tt_aot_costs(program, each, None))
            if job.get("optimized"):
                name = C.create_string_buffer(32)
                self.save(lib.tt_aot_optimized, job["optimized"], program, name)
                out["format"] = name.value.decode()
            if job.get("cache"):
                self.ok(lib.tt_aot_store(aot, program, text, len(text), flags, job.get("device", 0), job["cache"].encode()))
            if job.get("executable"):
                self.save(lib.tt_aot_serialize, job["executable"], program)
        except Refused as e:
            return {**out, "error": str(e), "code": e.code}
        finally:
            lib.tt_aot_program_free(program)
        return out


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the compiler prints is noise
    compiler = Compiler(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        try:
            answer = compiler.compile(json.loads(line))
        except Refused as e:
            answer = {"error": str(e), "code": e.code}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    answers.close()
    os._exit(0)  # without the compiler's own ending, which is not always a clean one


if __name__ == "__main__":
    main()
